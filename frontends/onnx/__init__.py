"""ONNX models, opset 7 and later."""
