"""Where programs import ONNX Runtime's exceptions from; the modules are attributes at once."""

from braid.onnxruntime.capi import (
    _pybind_state,
    build_and_package_info,
    onnxruntime_inference_collection,
    onnxruntime_pybind11_state,
)

__all__ = [
    "_pybind_state",
    "build_and_package_info",
    "onnxruntime_inference_collection",
    "onnxruntime_pybind11_state",
]
