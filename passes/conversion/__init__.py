"""What conversions from other dialects share."""
