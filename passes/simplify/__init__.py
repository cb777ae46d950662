"""Rewrites that save work at run time without deciding anything."""
