"""One module per command: ports in, values out."""
