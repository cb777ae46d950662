"""The names of ONNX Runtime's Python API, over models that braid compiles.

```python
import braid.onnxruntime as ort

session = ort.InferenceSession("model.onnx")
(y,) = session.run(None, {"x": x})
```

Programs that are written for `onnxruntime` run with the import replaced. What has no meaning here
is taken, and said at the level DEBUG of the logger `braid`; what is unknown is refused.
"""

from braid.onnxruntime.binding import IOBinding
from braid.onnxruntime.checked_options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
)
from braid.onnxruntime.node_args import ModelMetadata, NodeArg
from braid.onnxruntime.process import (
    API_VERSION,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_device,
    get_version_string,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from braid.onnxruntime.providers import get_all_providers, get_available_providers
from braid.onnxruntime.run_options import RunOptions
from braid.onnxruntime.session import InferenceSession
from braid.onnxruntime.session_options import SessionOptions
from braid.onnxruntime.values import OrtDevice, OrtValue

__version__ = API_VERSION

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "__version__",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
