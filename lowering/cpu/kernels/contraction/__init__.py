"""Products of matrices in register tiles: nest, code, and the choice of a tile."""
