"""Scenario folders: a runner, a local forge, a git server and a registry. Standard library only."""
