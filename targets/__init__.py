"""What a pass may ask of a machine: what it has, what it costs, who makes its kernels."""
