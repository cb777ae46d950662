"""The only place that selects the Python bindings of upstream MLIR.

`torch_mlir` and LLVM's own `mlir` package are the same bindings under two names; the rest of the
code takes them from here. They come without type information, so they are `Any` to the type
checker.
"""

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from braid.support.distribution import install_command
from braid.support.errors import BraidError
from braid.support.lazy import LazyModule

_PACKAGES = ("torch_mlir", "mlir")
_BUNDLED = Path(__file__).parent / "mlir"
"""The directory of the bindings in wheels (release/bundle.py), for where none are installed."""


# The modules in C: those in Python around them also bring numpy and a class for every op. They are
# loaded at their first use, since models in the compilation cache need none of them.
ir: Any = LazyModule(lambda: _library("_mlir").ir)
passmanager: Any = LazyModule(lambda: _library("_mlir").passmanager)
llvm: Any = LazyModule(lambda: _library("_mlirDialectsLLVM"))


@cache
def package() -> str:
    """Name of the package that the bindings come from.

    Raises:
        BraidError: none is installed.

    """
    for name in _PACKAGES:
        # The `mlir-python-bindings` on PyPI is an empty placeholder: only `ir` shows which it is.
        if find_spec(name) is not None and find_spec(f"{name}.ir") is not None:
            return name
    if _BUNDLED.is_dir():
        sys.path.append(str(_BUNDLED))
        return _PACKAGES[0]
    raise BraidError(
        f"the Python bindings of MLIR are missing; looked for {' and '.join(_PACKAGES)}",
        hint=install_command(),
    )


def library_file() -> Path:
    """Return the shared library of the bindings."""
    return Path(_library("_mlir").__file__)


def _library(name: str) -> Any:
    return import_module(f"{package()}._mlir_libs.{name}")


def without_op_classes() -> None:
    """Stop making classes for ops in this process, from now on.

    To look for these imports all of an op's dialect, which takes longer than to compile a kernel.
    """
    _library("_mlir").globals.dialect_search_modules = []


def has_bindings_of_stablehlo() -> bool:
    """Return whether bindings of MLIR with StableHLO are installed."""
    try:
        return find_spec(f"{package()}._mlir_libs._stablehlo") is not None
    except BraidError:
        return False


def register_stablehlo(context: Any) -> bool:
    """Register StableHLO and CHLO in a `Context`; false where the bindings come without them."""
    if not has_bindings_of_stablehlo():
        return False
    stablehlo = _library("_stablehlo")
    stablehlo.register_dialect(context)
    stablehlo.register_stablehlo_passes()
    # CHLO has no binding; a pass that depends on it loads it.
    with context:
        loading = passmanager.PassManager.parse(_LOADS_CHLO)
        loading.run(ir.Module.create(ir.Location.unknown()).operation)
    return True


_LOADS_CHLO = "builtin.module(func.func(stablehlo-legalize-quant-to-math))"
