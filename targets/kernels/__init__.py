"""Kernel families: their protocol, who has which, calling those of others."""
