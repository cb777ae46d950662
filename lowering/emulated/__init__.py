"""What stands in for backends that are not installed."""
