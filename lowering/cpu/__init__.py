"""Code for the CPU: `pipeline` takes a model from outlined kernels to object code.

- `kernels`: families of kernels, and `fallback`: kernels of all other groups, by upstream's passes
"""
