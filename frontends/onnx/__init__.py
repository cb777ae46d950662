"""ONNX models; the importer is loaded on first use, since inspecting a file needs less."""

from typing import TYPE_CHECKING

from braid.support.lazy import lazy_names

if TYPE_CHECKING:
    from braid.frontends.onnx.model import ImportedModel, OpenDimsError, import_onnx
    from braid.frontends.onnx.model_file import read_model_bytes

__all__ = ["ImportedModel", "OpenDimsError", "import_onnx", "read_model_bytes"]

_HOMES = {
    "ImportedModel": "braid.frontends.onnx.model",
    "OpenDimsError": "braid.frontends.onnx.model",
    "import_onnx": "braid.frontends.onnx.model",
    "read_model_bytes": "braid.frontends.onnx.model_file",
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _HOMES)
