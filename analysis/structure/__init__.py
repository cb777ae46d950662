"""Analyze how a module is built: nesting, dominance, validity, which ops compute."""
