"""The base of the families, and what they ask about a group: layouts, loops, traffic."""
