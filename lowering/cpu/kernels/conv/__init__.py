"""Convolutions: which groups are one, and how one is computed as a product of matrices."""
