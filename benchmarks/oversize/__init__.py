"""Small networks with one huge tensor inside."""
