"""From StableHLO to braid."""
