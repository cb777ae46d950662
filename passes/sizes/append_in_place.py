"""`append-in-place`: let a state that grows do so along its outermost dim."""

from dataclasses import dataclass, replace

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.movement import ConcatOp, TransposeOp
from braid.dialects.braid.sizes import assumptions_of, is_open, symbols_attribute
from braid.dialects.braid.state import StatePort, set_appended, state_of
from braid.dialects.braid.variants import public_functions
from braid.support.likely_sizes import LIKELY_STATE
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.expression import Extent, Size, Symbol, atom_alone


@dataclass(frozen=True)
class AppendInPlacePass(ModulePass):
    """Let a state that grows by a concatenation have the dim that grows as its outermost one.

    New rows then follow the old ones in memory: a caller that passes one buffer as the input and as
    the output copies nothing. Readers see the state through transposes, which are layouts where
    their kernels take them.

    In: a function with `braid.state` on arguments. Out: where the output is a concatenation of the
    argument and others, both have that dim first, `braid.dim_order` maps their dims to dims of the
    model, and the argument has `braid.appended`. Sizes of such dims are likely to be 1,024.
    If the output is the argument itself, which appends nothing, the argument has it, too.

    ```mlir
    %y = braid.concat %past, %new {dim = 2 : i64} : (tensor<1x8x?x64xf32, …>, …) -> …
    // becomes, with %past: tensor<?x1x8x64xf32, …>
    %0 = braid.transpose %new {permutation = array<i64: 2, 0, 1, 3>} : …
    %y = braid.concat %past, %0 {dim = 0 : i64} : …
    ```
    """

    name = "append-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the states of public functions."""
        for function in public_functions(op):
            for port in state_of(function):
                if port.appended:
                    continue
                if _is_kept(function, port):
                    set_appended(function, port, ())
                elif (concat := _growth(function, port)) is not None:
                    _append(function, port, concat)


def _is_kept(function: FuncOp, port: StatePort) -> bool:
    """Return whether the next state is the state itself, as what an encoder has given is."""
    end = function.body.block.last_op
    assert end is not None
    is_own = end.operands[port.output] is function.body.block.args[port.input]
    return is_own and is_open(function)


def _growth(function: FuncOp, port: StatePort) -> ConcatOp | None:
    """Return the op that appends to the state; None if the state has another use."""
    block = function.body.block
    end, argument = block.last_op, block.args[port.input]
    assert end is not None
    concat = end.operands[port.output].owner
    if not isinstance(concat, ConcatOp) or concat.inputs[0] is not argument:
        return None
    if not isinstance(extents_of(argument)[concat.dim.value.data], Size):
        return None
    others = [*concat.inputs[1:], *(o for i, o in enumerate(end.operands) if i != port.output)]
    return None if argument in others or concat.output in others else concat


def _append(function: FuncOp, port: StatePort, concat: ConcatOp) -> None:
    argument, dim = function.body.block.args[port.input], concat.dim.value.data
    extents = extents_of(argument)
    _assume_length(function, extents[dim])
    if all(extent == 1 for extent in extents[:dim]):
        set_appended(function, port, ())
        return
    order = (dim, *(d for d in range(len(extents)) if d != dim))
    _reorder(function.body.block, argument, concat, order)
    end = function.body.block.last_op
    assert end is not None
    function.function_type = FunctionType.from_lists(
        [each.type for each in function.body.block.args], [each.type for each in end.operands]
    )
    set_appended(function, port, order)


def _reorder(
    block: Block, argument: BlockArgument, concat: ConcatOp, order: tuple[int, ...]
) -> None:
    """Bring the argument and the concatenation into this order of dims, and readers back."""
    inverse = [int(dim) for dim in np.argsort(order)]
    extents, result = extents_of(argument), concat.output
    type = tensor_type(element_type_of(argument), [extents[dim] for dim in order])
    parts = [TransposeOp.get(value, order) for value in concat.inputs[1:]]
    stored = Rewriter.replace_value_with_new_type(argument, type)
    whole = ConcatOp.get([stored, *parts], 0)
    whole.attributes.update({n: a for n, a in concat.attributes.items() if n != "dim"})
    back = TransposeOp.get(whole.output, inverse)
    for op in (*parts, whole, back):
        op.location = concat.location
    Rewriter.insert_op([*parts, whole, back], InsertPoint.before(concat))
    end = block.last_op
    assert end is not None
    for use in list(result.uses):
        is_output = use.operation is end
        use.operation.operands[use.index] = whole.output if is_output else back.output
    Rewriter.erase_op(concat)
    if not any(back.output.uses):
        Rewriter.erase_op(back)
    readers = [use for use in stored.uses if use.operation is not whole]
    if readers:
        restored = TransposeOp.get(stored, inverse)
        Rewriter.insert_op(restored, InsertPoint.at_start(block))
        for use in readers:
            use.operation.operands[use.index] = restored.output


def _assume_length(function: FuncOp, extent: Extent) -> None:
    """Let the size of a dim that grows be likely to be long, where it is a symbol."""
    atom = atom_alone(extent) if isinstance(extent, Size) else None
    if not isinstance(atom, Symbol):
        return
    assumed = dict(assumptions_of(function).symbols)
    own = assumed.get(atom.name, Assumed())
    if not own.likely:
        assumed[atom.name] = replace(own, likely=(own.nearest(LIKELY_STATE),))
        function.attributes[SYMBOLS] = symbols_attribute(assumed)
