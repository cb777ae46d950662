"""Importers of ONNX Runtime's own ops, those of the domain `com.microsoft`."""

from braid.frontends.onnx.microsoft import (
    activations,
    normalization,
    quantized,
    quantized_lstm,
)

__all__ = ["activations", "normalization", "quantized", "quantized_lstm"]
