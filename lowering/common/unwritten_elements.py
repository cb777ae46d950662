"""Elements of a destination that no iteration of a nest writes, and that keep their values.

Upstream's `linalg-fuse-elementwise-ops` and its bufferization look at bodies alone: a destination
that the body does not read, or that only dead ops read, becomes new memory without contents. That
is right only where the nest writes every element. For other elements, the yielded value depends on
the destination through an op that upstream does not know. Once the nest works on buffers, elements
that are not written keep their values.
"""

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.structure.loop_nests import op_name, writes_every_element


def read_partly_written(function: FuncOp) -> None:
    """Make the nests of a function on tensors read each destination that they write in part.

    ```mlir
    linalg.yield %v : f32
    // becomes
    %k = builtin.unrealized_conversion_cast %v, %out : f32, f32 to f32
    linalg.yield %k : f32
    ```
    """
    for op in [op for op in function.walk() if op_name(op) == "linalg.generic"]:
        block = op.regions[0].block
        last = block.last_op
        assert last is not None
        outputs = block.args[len(block.args) - len(op.results) :]
        for number, (value, output) in enumerate(zip(last.operands, outputs, strict=True)):
            if not writes_every_element(op, number):
                reading = UnrealizedConversionCastOp.get([value, output], [value.type])
                Rewriter.insert_op(reading, InsertPoint.before(last))
                last.operands[number] = reading.results[0]


def forget_reading(function: FuncOp) -> None:
    """Remove the ops of `read_partly_written`, once the function works on buffers."""
    for op in [op for op in function.walk() if isinstance(op, UnrealizedConversionCastOp)]:
        if len(op.inputs) == 2:
            Rewriter.replace_op(op, [], [op.inputs[0]])
