"""The first elements of rows in some order: keys, candidates, and how these are sorted."""
