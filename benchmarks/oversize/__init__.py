"""Models with one huge tensor inside of a small network."""
