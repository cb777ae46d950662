"""Kernels of groups that no family takes: a thread a point of each loop nest."""
