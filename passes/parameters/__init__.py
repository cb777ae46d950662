"""What is computed from weights alone, once, at compile time."""
