"""Code for the CPU: `backend` is what the compiler asks.

- `kernels`: families of kernels, and `fallback`: kernels of all other groups, by upstream's passes
"""
