"""Share what every backend needs on the way to code."""
