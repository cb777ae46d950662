"""Schedule search and measuring; the one room that joins lowering and runtime."""
