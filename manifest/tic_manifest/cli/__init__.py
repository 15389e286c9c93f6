"""One module per command: parse, call the stage, render, exit."""
