"""Bytes to values and back: strict readers, one canonical writer. Pure."""
