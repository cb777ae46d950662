"""Functions of integer ops as designs for FPGAs: stages between channels, and their RTL."""
