"""What the processes of a worker really loaded. Built into one file by scripts/build-agent."""
