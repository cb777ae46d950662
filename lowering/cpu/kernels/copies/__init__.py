"""Copies: between strided arrays, and such that permute elements, by tiles in registers."""
