"""Values to findings. Pure: no process, no socket, no clock."""
