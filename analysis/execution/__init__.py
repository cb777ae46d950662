"""Which ops run as kernels, how often and beside what: executions expected, profiles, streams."""
