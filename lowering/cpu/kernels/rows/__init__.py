"""Rows: reductions, softmax and layer normalization, with a row or several in a grid iteration."""
