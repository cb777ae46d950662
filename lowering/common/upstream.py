"""Running upstream passes on MLIR text."""

from collections.abc import Sequence
from typing import Any

from braid.support.errors import BraidError
from braid.support.mlir_bindings import ir, llvm, passmanager


def run_upstream_passes(text: str, passes: Sequence[str]) -> str:
    """The module `text` after the upstream `passes`, again as text.

    Raises BraidError with upstream's diagnostics if it does not parse or a pass fails.
    """
    with ir.Context():
        return str(_run(text, passes))


def generic_form(text: str, passes: Sequence[str]) -> str:
    """As `run_upstream_passes`, with the module printed in generic form, which xDSL parses."""
    with ir.Context():
        module = _run(text, passes)
        return str(module.operation.get_asm(print_generic_op_form=True, assume_verified=True))


def to_llvm_ir(text: str, passes: Sequence[str]) -> str:
    """The module `text` as LLVM IR; `passes` must leave nothing but the `llvm` dialect.

    Raises BraidError as `run_upstream_passes` does, and where a function is left.
    """
    with ir.Context():
        module = _run(text, passes)
        # The translation ends the process where it meets another dialect.
        left = {op.operation.name for op in module.body} - {"llvm.func", "llvm.mlir.global"}
        if left:
            raise BraidError(f"upstream MLIR cannot lower the kernel: {', '.join(sorted(left))}")
        return str(llvm.translate_module_to_llvmir(module.operation))


def _run(text: str, passes: Sequence[str]) -> Any:
    try:
        module = ir.Module.parse(text)
        passmanager.PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)
    except (ir.MLIRError, ValueError) as error:
        raise BraidError(f"upstream MLIR rejects the kernel: {error}") from error
    return module
