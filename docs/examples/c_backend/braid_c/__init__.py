"""A backend for braid that writes C for elementwise kernels, and leaves the others to the host."""
