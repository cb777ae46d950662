"""What importers of ONNX ops read nodes with, build ops with, and register themselves in."""
