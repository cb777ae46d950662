"""Build a design of stages and memories: its streams, and its reads of memories."""
