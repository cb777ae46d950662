"""Shrinking a model on which a command fails, op by op."""
