"""ONNX models."""

from braid.frontends.onnx.model import ImportedModel, OpenDimsError, import_onnx
from braid.frontends.onnx.model_file import read_model_bytes

__all__ = ["ImportedModel", "OpenDimsError", "import_onnx", "read_model_bytes"]
