"""Which ops become one kernel, and tiles within kernels."""
