"""Running a model, compiled or interpreted, whole or layer by layer."""
