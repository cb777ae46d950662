"""Package a compiled model: its weights, its artifact, its library for C."""
