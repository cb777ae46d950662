"""The parts of `braid-opt`."""
