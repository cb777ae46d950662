"""Products of matrices in register tiles: problem, code, and the choice of a tile."""
