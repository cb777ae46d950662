"""Importers of ONNX Runtime's own ops, in the domain `com.microsoft`."""

from braid.frontends.onnx.microsoft import (
    activations,
    fused,
    group_query,
    low_bits,
    multi_head,
    normalization,
    quantized,
    quantized_lstm,
    rotary,
)

__all__ = [
    "activations",
    "fused",
    "group_query",
    "low_bits",
    "multi_head",
    "normalization",
    "quantized",
    "quantized_lstm",
    "rotary",
]
