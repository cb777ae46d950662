"""Building kernels out of upstream dialects: index arithmetic, loops, vectors, buffers."""
