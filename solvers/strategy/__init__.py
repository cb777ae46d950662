"""Strategy assignment: every node picks one strategy at least total node and edge cost."""
