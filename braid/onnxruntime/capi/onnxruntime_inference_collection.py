"""Where the classes stand in ONNX Runtime, which some programs import from here."""

from braid.onnxruntime.binding import IOBinding
from braid.onnxruntime.session import InferenceSession
from braid.onnxruntime.values import OrtDevice, OrtValue

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue"]
