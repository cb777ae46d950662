"""Compute the part of an operand that a part of a result reads, and tiles of such parts."""
