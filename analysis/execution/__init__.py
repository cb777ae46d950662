"""Find which ops run as kernels, and concurrently with which others: stages, streams between
ops."""
