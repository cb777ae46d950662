"""From CIRCT's `hw`, `comb` and `seq` dialects to SystemVerilog, by CIRCT's own passes."""

import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any

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


def system_verilog(modules: str, before: Sequence[str] = ()) -> str:
    """The text of `hw` modules in SystemVerilog, with these passes of CIRCT `before` its own.

    Raises UnsupportedError where CIRCT is not installed, and BraidError where it rejects them.
    """
    try:
        circt: Any = import_module("pycde.circt")
        ir: Any = import_module("pycde.circt.ir")
        passes: Any = import_module("pycde.circt.passmanager")
    except ImportError as error:
        raise UnsupportedError(
            "CIRCT, which writes SystemVerilog, is not installed",
            hint="pip install 'braid[fpga]'",
        ) from error
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
