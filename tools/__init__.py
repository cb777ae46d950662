"""Command line entry points: argument parsing, wiring and printing only."""
