"""What families ask about a group: its layouts, the loops over it, what it moves."""
