"""ONNX models."""

from braid.frontends.onnx.model import ImportedModel, import_onnx

__all__ = ["ImportedModel", "import_onnx"]
