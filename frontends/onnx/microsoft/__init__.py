"""Importers of ONNX Runtime's own ops, those of the domain `com.microsoft`."""

from braid.frontends.onnx.microsoft import (
    activations,
    multi_head,
    normalization,
    quantized,
    quantized_lstm,
)

__all__ = ["activations", "multi_head", "normalization", "quantized", "quantized_lstm"]
