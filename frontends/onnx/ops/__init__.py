"""Importers of ONNX ops: each file registers those of one kind."""
