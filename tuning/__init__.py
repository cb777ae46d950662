"""Search of schedules and measuring: of kernels, orders, layouts and whole models."""
