"""What tensors take in memory, how they are addressed, and when they are live."""
