"""Which family makes a kernel in which schedule, as tuning has found."""
