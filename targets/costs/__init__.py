"""What ops and groups cost on a machine: measured, declared or estimated."""
