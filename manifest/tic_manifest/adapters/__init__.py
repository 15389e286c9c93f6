"""The only code that runs a process or opens a socket."""
