"""Decision and apply passes, one a file, grouped by family."""
