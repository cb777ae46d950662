"""Where in memory values live."""
