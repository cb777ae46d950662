"""What every kernel of the CPU stands on: the vector unit, and the function around a kernel."""
