"""Quantized models in integer arithmetic."""
