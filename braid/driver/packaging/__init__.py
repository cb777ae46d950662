"""What a compiled model is shipped as: weights, artifact, library for C."""
