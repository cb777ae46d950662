"""From groups to kernel functions."""
