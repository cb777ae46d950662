"""The one place that picks the Python bindings of upstream MLIR.

`torch_mlir` and LLVM's own `mlir` package are the same bindings under two names; the rest of the
code takes them from here. They come without type information, so they are `Any` to the type
checker.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from braid.support.errors import BraidError

_PACKAGES = ("torch_mlir", "mlir")


def _installed_package() -> str:
    for package in _PACKAGES:
        # The `mlir-python-bindings` on PyPI is an empty placeholder: only `ir` tells.
        if find_spec(package) is not None and find_spec(f"{package}.ir") is not None:
            return package
    raise BraidError(
        f"the Python bindings of MLIR are missing; looked for {' and '.join(_PACKAGES)}",
        hint="pip install torch-mlir",
    )


PACKAGE: str = _installed_package()
"""Name of the package that the bindings come from."""

ir: Any = import_module(f"{PACKAGE}.ir")
passmanager: Any = import_module(f"{PACKAGE}.passmanager")
llvm: Any = import_module(f"{PACKAGE}.dialects.llvm")


def register_stablehlo(context: Any) -> bool:
    """Register StableHLO and CHLO in a `Context`; false where the bindings come without them."""
    if find_spec(f"{PACKAGE}._mlir_libs._stablehlo") is None:
        return False
    stablehlo: Any = import_module(f"{PACKAGE}._mlir_libs._stablehlo")
    stablehlo.register_dialect(context)
    stablehlo.register_stablehlo_passes()
    # CHLO has no binding; a pass that depends on it loads it.
    with context:
        loading = passmanager.PassManager.parse(_LOADS_CHLO)
        loading.run(ir.Module.create(ir.Location.unknown()).operation)
    return True


_LOADS_CHLO = "builtin.module(func.func(stablehlo-legalize-quant-to-math))"
