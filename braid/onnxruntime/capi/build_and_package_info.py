"""The name and the version of the package whose API this is."""

from braid.onnxruntime.process import API_VERSION, package_name

__version__ = API_VERSION
__all__ = ["__version__", "package_name"]
