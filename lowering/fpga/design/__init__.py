"""What a design of stages and memories is made of: its streams, and how it reads memories."""
