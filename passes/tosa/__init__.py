"""From TOSA to braid."""
