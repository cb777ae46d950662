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

# The modules in C: those in Python around them also bring numpy and a class for every op.
_mlir: Any = import_module(f"{PACKAGE}._mlir_libs._mlir")
ir: Any = _mlir.ir
passmanager: Any = _mlir.passmanager
llvm: Any = import_module(f"{PACKAGE}._mlir_libs._mlirDialectsLLVM")
LIBRARY: str = _mlir.__file__
"""Path of the library that they are in."""


def without_op_classes() -> None:
    """From now on ops have no classes of their own in this process.

    To look for these imports all of an op's dialect, which takes longer than to compile a kernel.
    """
    _mlir.globals.dialect_search_modules = []


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
