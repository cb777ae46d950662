"""What is recomputed, fused, and where in memory it lives."""
