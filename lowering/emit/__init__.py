"""Building kernels out of upstream dialects: index arithmetic, loops, vectors, buffers.

All backends may use it; it knows no machine but by its vectors. `math` expands elementary
functions.
"""
