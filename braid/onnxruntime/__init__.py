"""The names of ONNX Runtime's Python API, over models that braid compiles.

```python
import braid.onnxruntime as ort

session = ort.InferenceSession("model.onnx")
(y,) = session.run(None, {"x": x})
```

Programs that are written for `onnxruntime` run with the import replaced. Settings without effect
here are accepted, and logged at the level DEBUG of the logger `braid`; unknown ones are refused.
"""

from braid.onnxruntime import capi, shared_names
from braid.onnxruntime.absent import AdapterFormat, ModelCompiler
from braid.onnxruntime.binding import IOBinding
from braid.onnxruntime.numbers import OrtDeviceVendorId
from braid.onnxruntime.process import (
    API_VERSION,
    cuda_version,
    package_name,
    preload_dlls,
    print_debug_info,
    version,
)
from braid.onnxruntime.shared_names import *  # noqa: F403

__version__ = API_VERSION

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "ModelCompiler",
    "OrtDeviceVendorId",
    "__version__",
    "capi",
    "cuda_version",
    "package_name",
    "preload_dlls",
    "print_debug_info",
    "version",
]
__all__ += shared_names.__all__
