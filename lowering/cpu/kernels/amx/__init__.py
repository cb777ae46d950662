"""Products by AMX: matrices in tile registers of 16 rows of 64 bytes."""
