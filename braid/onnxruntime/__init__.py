"""The names of ONNX Runtime's Python API, over models that braid compiles.

```python
import braid.onnxruntime as ort

session = ort.InferenceSession("model.onnx")
(y,) = session.run(None, {"x": x})
```

Programs that are written for `onnxruntime` run with the import replaced. What has no meaning here
is taken, and said at the level DEBUG of the logger `braid`; what is unknown is refused.
"""

from braid.onnxruntime import capi
from braid.onnxruntime.absent import (
    AdapterFormat,
    LoraAdapter,
    ModelCompiler,
    ModelPackage,
    ModelPackageComponentContext,
    ModelPackageContext,
    ModelPackageOptions,
    ModelPackageWriteMode,
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
    OrtEpContextData,
    OrtEpContextDataBuffer,
    OrtExternalInitializerInfo,
    OrtSyncStream,
    SparseTensor,
    register_execution_provider_library,
    unregister_execution_provider_library,
)
from braid.onnxruntime.binding import (
    IOBinding,
    SessionIOBinding,
)
from braid.onnxruntime.checked_options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
)
from braid.onnxruntime.devices import (
    OrtArenaCfg,
    OrtDevice,
    OrtEpDevice,
    OrtHardwareDevice,
    OrtMemoryInfo,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    get_ep_devices,
)
from braid.onnxruntime.node_args import (
    ModelMetadata,
    NodeArg,
)
from braid.onnxruntime.numbers import (
    OrtAllocatorType,
    OrtCompileApiFlags,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from braid.onnxruntime.process import (
    API_VERSION,
    cuda_version,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    package_name,
    preload_dlls,
    print_debug_info,
    set_default_logger_callback,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
    version,
)
from braid.onnxruntime.providers import (
    get_all_providers,
    get_available_providers,
)
from braid.onnxruntime.run_options import (
    RunOptions,
)
from braid.onnxruntime.session import (
    InferenceSession,
)
from braid.onnxruntime.session_options import (
    SessionOptions,
)
from braid.onnxruntime.value_vectors import (
    copy_tensors,
)
from braid.onnxruntime.values import (
    OrtValue,
)

__version__ = API_VERSION

__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "ModelPackage",
    "ModelPackageComponentContext",
    "ModelPackageContext",
    "ModelPackageOptions",
    "ModelPackageWriteMode",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "__version__",
    "capi",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "cuda_version",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "package_name",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "unregister_execution_provider_library",
    "version",
]
