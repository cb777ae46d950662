"""Prepare the ops of a backend before groups and layouts are decided."""
