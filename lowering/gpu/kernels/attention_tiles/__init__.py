"""Attention by tiles: two products, and between them rows of scores that are never stored."""
