"""Paddings: which groups are one, and the border that they write."""
