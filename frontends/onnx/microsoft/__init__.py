"""Importers of ONNX Runtime's own ops, those of the domain `com.microsoft`."""

from braid.frontends.onnx.microsoft import quantized, quantized_lstm

__all__ = ["quantized", "quantized_lstm"]
