"""Answer what a pass asks of a machine: what it has, what it costs, who makes its kernels."""
