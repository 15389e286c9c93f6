"""Which values of a comparison are valid."""

from tic_mini_gamma._mask import count

__all__ = ["count", "full_mask"]


def full_mask(lengths):
    """Every value is valid: one byte of 1 per value."""
    return bytes([1]) * sum(lengths)
