"""Read the results of profiled runs, and infer how often ops are expected to run."""
