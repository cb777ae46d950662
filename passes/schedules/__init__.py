"""Choose the family and the schedule of each kernel, as tuning has found."""
