"""Groups computed tile by tile: the members of a tile, their memory, and the kernel around."""
