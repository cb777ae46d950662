"""Groups with open dims, and the same groups at numbers."""
