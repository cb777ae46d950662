"""Read what a run of a model has shown, and infer how often ops are expected to run."""
