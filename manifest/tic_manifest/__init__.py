"""`tic-manifest`: a delivery of pull requests and one image as a fact that anyone can re-check."""

__version__ = "0.1.0"
