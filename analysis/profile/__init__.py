"""What a run of a model has shown, and how often ops are expected to run by it."""
