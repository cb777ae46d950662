"""From decided graphs to code, one folder a backend."""
