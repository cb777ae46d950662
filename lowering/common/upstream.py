"""Modules as text that upstream MLIR reads, its passes, and its generic form back into xDSL."""

from collections.abc import Sequence
from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.printer import Printer

from braid.dialects.float_literals import BitPatternParser
from braid.support.errors import BraidError
from braid.support.mlir_bindings import ir, llvm, passmanager


class _Printer(Printer):
    """Writes every attribute once and then copies it: kernels have few types."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream, print_generic_format=True)
        self._texts: dict[Attribute, str] = {}

    def print_attribute(self, attribute: Attribute) -> None:
        text = self._texts.get(attribute)
        if text is None:
            stream = StringIO()
            Printer(stream, print_generic_format=True).print_attribute(attribute)
            text = self._texts[attribute] = stream.getvalue()
        self.print_string(text)


def module_text(module: ModuleOp) -> str:
    """The module in generic form, which upstream parses for every dialect."""
    stream = StringIO()
    _Printer(stream).print_op(module)
    return stream.getvalue()


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


_DIALECTS = (
    "affine",
    "arith",
    "bufferization",
    "builtin",
    "func",
    "linalg",
    "math",
    "memref",
    "scf",
    "tensor",
    "vector",
)


def parse_upstream(text: str) -> ModuleOp:
    """A module in upstream's generic form; ops that xDSL does not know stay unregistered."""
    context = Context(allow_unregistered=True)
    dialects = get_all_dialects()
    for name in _DIALECTS:
        context.register_dialect(name, dialects[name])
    module = BitPatternParser(context, text).parse_module()
    for op in module.walk():
        _drop_unknown_properties(op)
    return module


def _drop_unknown_properties(op: Operation) -> None:
    """Upstream prints properties at their defaults that xDSL's op does not have yet."""
    if not isinstance(op, IRDLOperation) or isinstance(op, UnregisteredOp):
        return
    known = op.get_irdl_definition().properties
    for name in [name for name in op.properties if name not in known]:
        del op.properties[name]


BUFFERIZATION_PASSES: tuple[str, ...] = (
    # Groups of upstream ops may hold arith and math on whole tensors.
    "func.func(convert-elementwise-to-linalg)",
    "canonicalize",
    "cse",
    # Producers go into their consumers: what has one reader gets no buffer.
    "linalg-fuse-elementwise-ops",
    "canonicalize",
    "cse",
    # tensor.pad becomes a fill and an insert_slice, which bufferize in place.
    "convert-tensor-to-linalg",
    # What is written into a slice or into the result is computed there.
    "eliminate-empty-tensors",
    "one-shot-bufferize",
    "canonicalize",
    "cse",
    # Copies of a buffer to itself show only now.
    "canonicalize",
)
