"""What `scripts/engine`, `scripts/registry` and `scripts/clean-root` share: standard library only."""
