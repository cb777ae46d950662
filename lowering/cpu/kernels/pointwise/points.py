"""The elementwise ops of a group, evaluated on one vector of points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from xdsl.dialects.builtin import i1, i8
from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.quantization import QuantizationOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.pointwise.quantization import quantization_emitter
from braid.lowering.cpu.kernels.pointwise.specialize import specialized, splat
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math.elementwise_table import Emit, emitter_of, is_number

Leaf = Callable[[BlockArgument], Value]
"""The vector of a block argument's values at the points."""


@dataclass(frozen=True)
class Pointwise:
    """Elementwise ops in order, the block arguments they read, and the group's results.

    `shape` is the logical shape of the results; `slices` are parts of block arguments that are
    read where they lie.
    """

    ops: tuple[Operation, ...]
    leaves: tuple[BlockArgument, ...]
    results: tuple[SSAValue, ...]
    shape: tuple[int, ...]
    slices: tuple[SliceOp, ...] = ()

    def evaluate(self, e: Emitter, leaf: Leaf, known: Mapping[SSAValue, Value]) -> list[Value]:
        """The vectors of the results; `known` holds those of the anchor and of slices."""
        values: dict[SSAValue, Value] = dict(known)
        for argument in self.leaves:
            loaded = leaf(argument)
            is_truth = element_type_of(argument) == i1
            values[argument] = _as_truth(e, loaded) if is_truth else loaded
        for op in self.ops:
            values[op.results[0]] = _evaluate(e, op, values)
        return [values[result] for result in self.results]

    @property
    def flops(self) -> int:
        """Scalar operations at one point."""
        return sum(op.ROW.flops for op in self.ops if isinstance(op, ElementwiseOp))

    @property
    def constants(self) -> int:
        """Vectors of constants that stay in registers between tiles, 4 at most."""
        splats = {splat(op) for op in self.ops if isinstance(op, ConstantOp)}
        return min(4, len(splats))


def pointwise(
    group: FusedOp,
    anchor: Operation | None = None,
    *,
    apart: Operation | None = None,
    with_slices: bool = False,
) -> Pointwise | None:
    """All of the group but `anchor` and `apart`, or None unless elementwise on one set of points.

    The points are those of the results: all results have one static shape, the anchor's if there
    is one, and every value is repeated to it. Slices of block arguments may be read `with_slices`.
    """
    members = tuple(
        op for op in group.body.block.ops if op not in (anchor, apart, group.terminator)
    )
    slices = tuple(op for op in members if with_slices and _is_stored_slice(op))
    ops = tuple(op for op in members if op not in slices)
    results = tuple(group.terminator.arguments)
    shapes = {shape_of(result) for result in results}
    if anchor is not None:
        shapes.add(shape_of(anchor.results[0]))
    if len(shapes) != 1 or any(_is_read(result) for result in results):
        return None
    return points_of(ops, results, shapes.pop(), slices)


def points_of(
    ops: Sequence[Operation],
    results: Sequence[SSAValue],
    shape: tuple[int, ...],
    slices: Sequence[SliceOp] = (),
) -> Pointwise | None:
    """`ops` on points of this shape, of which `results` are stored; None unless elementwise."""
    if not all(map(_is_supported, ops)):
        return None
    used = dict.fromkeys((*(operand for op in ops for operand in op.operands), *results))
    leaves = tuple(value for value in used if isinstance(value, BlockArgument))
    stored = (*results, *(op.input for op in slices))
    if any(shape_of(result) != shape for result in results):
        return None
    if min(shape, default=1) < 1 or not all(is_number(element_type_of(v)) for v in stored):
        return None
    if not all(is_number(kind) or kind == i1 for kind in map(element_type_of, leaves)):
        return None
    return Pointwise(tuple(ops), leaves, tuple(results), shape, tuple(slices))


def _as_truth(e: Emitter, stored: Value) -> Value:
    """Truth values of the bytes that they are stored in."""
    differ = emitter_of("ne", [i8, i8], i1)
    assert differ is not None
    return differ(e, [stored, e.constant(0, e.vector_type(i8))])


def _is_read(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) or isinstance(value.owner, SliceOp)


def _is_stored_slice(op: Operation) -> TypeGuard[SliceOp]:
    return isinstance(op, SliceOp) and isinstance(op.input, BlockArgument)


def _emit_of(op: ElementwiseOp) -> Emit | None:
    special = specialized(op)
    if special is not None:
        return special
    if isinstance(op, QuantizationOp):
        return quantization_emitter(op)
    operands = [element_type_of(operand) for operand in op.operands]
    return emitter_of(op.ROW.name, operands, op.result_type().element_type)


def _is_supported(op: Operation) -> bool:
    if isinstance(op, ConstantOp):
        return splat(op) is not None
    return isinstance(op, ElementwiseOp) and _emit_of(op) is not None


def _evaluate(e: Emitter, op: Operation, values: Mapping[SSAValue, Value]) -> Value:
    if isinstance(op, ConstantOp):
        value = splat(op)
        assert value is not None
        return e.constant(value, e.vector_type(element_type_of(op.output)))
    assert isinstance(op, ElementwiseOp)
    emit = _emit_of(op)
    assert emit is not None
    return emit(e, [values[operand] for operand in op.operands])
