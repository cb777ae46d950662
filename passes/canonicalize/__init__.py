"""Cleaning up: folding, canonical forms and common subexpressions."""
