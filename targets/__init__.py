"""Answer the questions of passes about a machine: its features, its costs, its kernels."""
