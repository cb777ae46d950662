"""The classes that some programs import from this module of ONNX Runtime."""

from braid.onnxruntime.absent import AdapterFormat, ModelCompiler, SparseTensor
from braid.onnxruntime.binding import IOBinding
from braid.onnxruntime.devices import OrtDevice
from braid.onnxruntime.numbers import OrtDeviceVendorId
from braid.onnxruntime.session import InferenceSession
from braid.onnxruntime.session_facts import Session
from braid.onnxruntime.value_vectors import copy_tensors
from braid.onnxruntime.values import OrtValue

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "copy_tensors",
]
