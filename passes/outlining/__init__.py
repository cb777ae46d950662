"""From groups to kernel functions, when all is decided."""
