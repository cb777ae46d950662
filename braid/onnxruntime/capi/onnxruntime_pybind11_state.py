"""ONNX Runtime's exceptions, and other names that programs import from this module."""

from braid.onnxruntime import shared_names
from braid.onnxruntime.errors import (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplementedStatus,
    RuntimeException,
)
from braid.onnxruntime.shared_names import *  # noqa: F403
from braid.onnxruntime.value_vectors import OrtValueVector

NotImplemented = NotImplementedStatus

__all__ = [
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "OrtValueVector",
    "RuntimeException",
]
__all__ += shared_names.__all__
