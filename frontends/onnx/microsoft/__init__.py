"""Importers of ONNX Runtime's own ops, those of the domain `com.microsoft`."""

from braid.frontends.onnx.microsoft import (
    activations,
    group_query,
    multi_head,
    normalization,
    quantized,
    quantized_lstm,
    rotary,
)

__all__ = [
    "activations",
    "group_query",
    "multi_head",
    "normalization",
    "quantized",
    "quantized_lstm",
    "rotary",
]
