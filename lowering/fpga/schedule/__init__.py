"""Choose how much of an output each stage computes in a cycle, and apply the choice."""
