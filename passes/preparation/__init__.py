"""What the ops of a backend need before groups and layouts are decided."""
