"""Code for the CPU: kernels, the program that calls them, objects."""
