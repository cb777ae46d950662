"""The base of the families, and their questions about a group: layouts, loops, traffic."""
