"""Frozen values. Nothing here reads, writes or decides."""
