"""A package outside of braid that adds one of everything."""
