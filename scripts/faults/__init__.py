"""Planted faults of the gate, and what finds them."""
