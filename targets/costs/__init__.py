"""Give the costs of ops and groups on a machine: measured, declared or estimated."""
