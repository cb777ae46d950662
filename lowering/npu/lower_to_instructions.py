"""`lower-to-instructions`: writes the instruction stream of a chip to a file."""

from dataclasses import dataclass, replace
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.lowering.npu.lower_block import lower_to_instructions
from braid.support.errors import BraidError, SourceLocation
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Stream, to_text
from braid.targets.simulator.stream_bytes import to_bytes


def lower_module(module: ModuleOp, backend: BackendDescription, function: str = "main") -> Stream:
    """Return the stream of the function of this name.

    Raises BraidError if there is none, and UnsupportedError for control flow and open dims.
    """
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and op.body.blocks]
    for op in functions:
        if op.sym_name.data == function:
            return lower_to_instructions(op.body.block, backend)
    raise BraidError(
        f"there is no function '{function}'",
        hint=f"expected one of {[op.sym_name.data for op in functions]}",
    )


def encoded(stream: Stream, path: Path) -> bytes:
    """Return the content for a file of this name: text if it ends in `.txt`, otherwise binary."""
    return to_text(stream).encode() if path.suffix == ".txt" else to_bytes(stream)


@dataclass(frozen=True)
class LowerToInstructionsPass(ModulePass):
    """Writes the stream of `function` for `target` to the file `output`.

    In: ops in the order in which they are to be issued. Out: the same module; the stream as text
    where `output` ends in `.txt`, otherwise in binary. Raises UnsupportedError for control flow.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "lower-to-instructions"

    output: str
    target: str | None = None
    function: str = "main"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower the module and write the program."""
        target = target_of(op, self.target)
        lowered = lower_module(op, target.default_backend, self.function)
        stream = replace(lowered, target=target.name)
        path = Path(self.output)
        try:
            path.write_bytes(encoded(stream, path))
        except OSError as error:
            raise BraidError(
                f"cannot write the stream: {error.strerror}", location=SourceLocation(self.output)
            ) from error
        count = len(stream.instructions)
        emit_remark(op, self.name, f"{count} instructions", instructions=count)
