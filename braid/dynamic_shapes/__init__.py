"""Models with open dims: buckets, padding between them, which dims arguments have."""
