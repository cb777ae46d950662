"""braid: an MLIR-based graph compiler for tensor programs.

```python
model = braid.compile("resnet50.onnx")
y = model(x)
model.save("resnet50.braid")
```

Names are loaded on first use, so that importing a part of braid does not import the compiler.
"""

from typing import TYPE_CHECKING

from braid.support.lazy import lazy_names

if TYPE_CHECKING:
    from braid.client import Client
    from braid.compiler import compile
    from braid.embedding import run_passes
    from braid.interpreted import interpret
    from braid.jax_export import from_jax
    from braid.onnxruntime.session import InferenceSession
    from braid.runtime.model import Model, load
    from braid.support.errors import BraidError
    from braid.support.progress import Progress
    from braid.torch_export import from_torch
    from braid.upstream_dialect import load_irdl

__version__ = "0.3.0"

__all__ = [
    "BraidError",
    "Client",
    "InferenceSession",
    "Model",
    "Progress",
    "__version__",
    "compile",
    "from_jax",
    "from_torch",
    "interpret",
    "load",
    "load_irdl",
    "run_passes",
]

_HOMES = {
    "BraidError": "braid.support.errors",
    "Client": "braid.client",
    "InferenceSession": "braid.onnxruntime.session",
    "Model": "braid.runtime.model",
    "Progress": "braid.support.progress",
    "compile": "braid.compiler",
    "from_jax": "braid.jax_export",
    "from_torch": "braid.torch_export",
    "interpret": "braid.interpreted",
    "load": "braid.runtime.model",
    "load_irdl": "braid.upstream_dialect",
    "run_passes": "braid.embedding",
}

if not TYPE_CHECKING:  # else type checkers take any name for one of these
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
