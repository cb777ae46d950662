"""Stand in for backends that are not installed."""
