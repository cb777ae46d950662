"""What `onnxruntime_pybind11_state` has, under the name that some programs import."""

from braid.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
