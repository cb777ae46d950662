"""Provide the vector unit and the function around a kernel, for every kernel of the CPU."""
