"""The names of `onnxruntime_pybind11_state`, under a name that some programs import."""

from braid.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
