"""Compiling a model: its source becomes a module, is decided, lowered, and packaged as a model."""
