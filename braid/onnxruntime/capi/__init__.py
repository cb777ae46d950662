"""Where programs import ONNX Runtime's exceptions from."""
