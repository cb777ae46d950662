"""Readers that turn a model file into a module of the braid dialect."""
