"""The bench of the probe's scenarios: an environment with JIT compilers, and a driver library of our own."""
