"""Share the parts that every backend needs on the way to code."""
