"""Elementwise ops: which groups have only such ops around an anchor, and their code."""
