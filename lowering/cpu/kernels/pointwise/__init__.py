"""Elementwise ops: their loops, alone and after the ops of other families."""
