"""Find which ops run as kernels, and beside what: stages, streams between ops."""
