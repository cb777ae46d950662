"""Share what conversions from other dialects need."""
