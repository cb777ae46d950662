"""ONNX Runtime's exceptions, and what else programs take from the module of this name."""

from braid.onnxruntime.checked_options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
)
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
from braid.onnxruntime.node_args import ModelMetadata, NodeArg
from braid.onnxruntime.process import get_device, set_seed
from braid.onnxruntime.providers import get_all_providers, get_available_providers
from braid.onnxruntime.run_options import RunOptions
from braid.onnxruntime.session_options import SessionOptions

NotImplemented = NotImplementedStatus

__all__ = [
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_seed",
]
