"""From CIRCT's `hw`, `comb` and `seq` dialects to SystemVerilog, by CIRCT's own passes."""

import io
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from threading import Lock
from types import ModuleType
from typing import Any

from braid.support.distribution import install_command
from braid.support.errors import BraidError, UnsupportedError

_PASSES = (
    "canonicalize",
    "cse",
    "hw.module(lower-seq-hlmem)",
    "lower-seq-firmem",
    "lower-seq-to-sv{disable-mem-randomization=true disable-reg-randomization=true}",
    "hw-memory-sim{disable-mem-randomization=true disable-reg-randomization=true}",
    "canonicalize",
    "cse",
    "hw.module(hw-cleanup,hw-legalize-modules,prettify-verilog)",
)

_IMPORTING = Lock()


def system_verilog(modules: str, before: Sequence[str] = ()) -> str:
    """Return the text of `hw` modules in SystemVerilog, with these passes of CIRCT `before` its
    own.

    Raises UnsupportedError where CIRCT is not installed, and BraidError where it rejects them.
    """
    circt, ir, passes = _bindings()
    context = ir.Context()
    circt.register_dialects(context)
    with context, ir.Location.unknown():
        try:
            module = ir.Module.parse("sv.macro.decl @ENABLE_INITIAL_MEM_\n" + modules)
            passes.PassManager.parse(f"builtin.module({','.join((*before, *_PASSES))})").run(
                module.operation
            )
        except (ir.MLIRError, ValueError) as error:
            raise BraidError(f"CIRCT rejects a design: {error}") from error
        module.operation.attributes["circt.loweringOptions"] = ir.StringAttr.get(
            "disallowLocalVariables,locationInfoStyle=none"
        )
        text = io.StringIO()
        circt.export_verilog(module, text)
        return text.getvalue()


@cache
def _bindings() -> tuple[Any, Any, Any]:
    """Import CIRCT's bindings, without the package around them.

    `pycde` enters a context in the thread that imports it and stays there: the process is aborted
    when that thread ends. Whoever imports `pycde` later gets all of it.
    """
    with _IMPORTING:
        stands_in = "pycde" not in sys.modules
        try:
            if stands_in:
                sys.modules["pycde"] = _package("pycde")
            names = ("pycde.circt", "pycde.circt.ir", "pycde.circt.passmanager")
            circt, ir, passes = map(import_module, names)
            return circt, ir, passes
        except ImportError as error:
            raise UnsupportedError(
                "CIRCT, which writes SystemVerilog, is not installed",
                hint=install_command("fpga"),
            ) from error
        finally:
            if stands_in:
                sys.modules.pop("pycde", None)


def _package(name: str) -> ModuleType:
    """Return a package in which modules are found, and whose own code was not run."""
    found = find_spec(name)
    if found is None:
        raise ModuleNotFoundError(f"no module '{name}'")
    return module_from_spec(found)
