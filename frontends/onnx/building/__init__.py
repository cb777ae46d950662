"""Help importers of ONNX ops read nodes, build ops, and register themselves."""
