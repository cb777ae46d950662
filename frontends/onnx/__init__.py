"""ONNX models."""

from braid.frontends.onnx.model import ImportedModel, import_onnx
from braid.frontends.onnx.model_file import read_model_bytes

__all__ = ["ImportedModel", "import_onnx", "read_model_bytes"]
