"""What every backend shares on the way to code."""
