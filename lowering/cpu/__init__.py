"""Code for the CPU: `backend` is the interface to the compiler.

- `kernels`: families of kernels, and `fallback`: kernels of all other groups, by upstream's passes
"""
