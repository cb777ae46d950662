"""Prove that a function computes the first elements of another function's results.

Two functions that were made from one model at a small and a large size of its open dims are walked
side by side. A pair of values is *proven* if the small one equals the first elements, in each dim,
of the large one. The arguments are assumed to be proven, since padding has this effect.

A loop nest of the small function runs over the first points of that of the large one; if both read
the same indices there, from proven values, and reduce over the same extents, its result is proven.
That holds whatever the padding is, so nothing is assumed about it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.base import IndirectOp, StructuredOp, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.dtypes import numpy_from_dense
from braid.dialects.braid.failure import FailOp
from braid.dialects.braid.movement import ConcatOp, ReshapeOp
from braid.dialects.braid.names import names_of
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Literal, Load, Position, walk
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.structure import Access, OperandSource, Stage, Structure

ParameterCheck = Callable[[str, str], bool]
"""A test that the first key's parameter holds the first elements of the second key's."""

_LOCKSTEP = (scf.IfOp, scf.IndexSwitchOp, scf.ForOp, scf.WhileOp)
_TERMINATORS = (ReturnOp, scf.YieldOp, scf.ConditionOp)
_ANOTHER_WAY = "is computed in another way at another size"


class NotAPrefix(Exception):
    """A value is not proven; the message gives the reason, and names the op if there is one."""


def prove_prefix(small: FuncOp, large: FuncOp, parameters: ParameterCheck) -> None:
    """Prove that the results of `small` are the first elements of those of `large`.

    Shapes must be static, and decomposable ops decomposed. Raises NotAPrefix without a proof, which
    does not mean that the claim is false.
    """
    _Proof(parameters).block(small.body.block, large.body.block)


def is_prefix(small: Array, large: Array) -> bool:
    """Return whether `small` holds the first elements of `large` in each dim, bit by bit."""
    if small.dtype != large.dtype or small.ndim != large.ndim:
        return False
    first = large[tuple(slice(extent) for extent in small.shape)]
    return first.shape == small.shape and first.tobytes() == small.tobytes()


class _Proof:
    def __init__(self, parameters: ParameterCheck) -> None:
        self._parameters = parameters
        self._proven: dict[SSAValue, SSAValue] = {}

    def block(self, small: Block, large: Block) -> None:
        """Prove a block from its arguments; its terminator's operands are proven then."""
        self._add(small.args, large.args)
        small_ops, large_ops = list(small.ops), list(large.ops)
        for a, b in zip(small_ops, large_ops, strict=False):
            self._op(a, b)
        if len(small_ops) != len(large_ops):
            raise NotAPrefix("the model has other ops at other sizes")

    def _op(self, small: Operation, large: Operation) -> None:
        if small.name != large.name or len(small.operands) != len(large.operands):
            raise NotAPrefix(f"{_named(small)} is another op at another size")
        for a, b in zip(small.operands, large.operands, strict=True):
            if self._proven.get(a) is not b:
                raise NotAPrefix(f"{_named(small)} uses other values at another size")
        reason = self._difference(small, large)
        if reason is not None:
            raise NotAPrefix(f"{_named(small)} {reason}")
        self._add(small.results, large.results)

    def _add(self, small: Sequence[SSAValue], large: Sequence[SSAValue]) -> None:
        if len(small) != len(large):
            raise NotAPrefix("the model has other values at other sizes")
        for a, b in zip(small, large, strict=True):
            if not _may_be_prefix(a, b):
                raise NotAPrefix(f"a value of type {b.type} becomes one of type {a.type}")
            self._proven[a] = b

    def _difference(self, small: Operation, large: Operation) -> str | None:
        """Return why the results are not proven, given that the operands are."""
        match small, large:
            case ConstantOp(), ConstantOp():
                values = numpy_from_dense(small.value), numpy_from_dense(large.value)
                return None if is_prefix(*values) else "is a constant that depends on the size"
            case ParameterOp(), ParameterOp():
                agree = self._parameters(small.key.data, large.key.data)
                return None if agree else "is a parameter that depends on the size"
            case FailOp(), FailOp():  # the texts may contain sizes
                return None
            case _ if isinstance(small, _TERMINATORS):
                return None
            case _ if isinstance(small, _LOCKSTEP):
                if _cases(small) != _cases(large):
                    return "has other branches at another size"
                for a, b in zip(small.regions, large.regions, strict=True):
                    for inner, other in zip(a.blocks, b.blocks, strict=True):
                        self.block(inner, other)
                return None
            case ((StructuredOp() | IndirectOp()), (StructuredOp() | IndirectOp())):
                return _structures(small, large)
            case _ if _is_same(small, large):
                return None
            case ReshapeOp(), ReshapeOp():
                return _reshapes(small, large)
            case ConcatOp(), ConcatOp():
                return _concatenations(small, large)
            case TopKOp(), TopKOp():
                return _selections(small, large)
            case ScatterElementsOp(), ScatterElementsOp():
                return _scattered_elements(small, large)
            case ScatterNdOp(), ScatterNdOp():
                return _scattered_slices(small, large)
            case _:
                return "mixes elements that padding would change"


def _cases(op: Operation) -> tuple[object, ...]:
    """Return the key of the regions of control flow."""
    numbers = op.cases if isinstance(op, scf.IndexSwitchOp) else None
    return numbers, *(len(region.blocks) for region in op.regions)


def _named(op: Operation) -> str:
    return next((f"'{name}'" for name in names_of(op)), f"an op {op.name}")


def _may_be_prefix(small: SSAValue, large: SSAValue) -> bool:
    if not all(isinstance(value.type, TensorType) for value in (small, large)):
        return small.type == large.type
    a, b = shape_of(small), shape_of(large)
    kinds = element_type_of(small) == element_type_of(large)
    return kinds and len(a) == len(b) and all(m <= n for m, n in zip(a, b, strict=True))


def _is_same(small: Operation, large: Operation) -> bool:
    """Return whether both do the same to equal values."""
    types = [(a.type, b.type) for a, b in zip(small.operands, large.operands, strict=True)]
    types += [(a.type, b.type) for a, b in zip(small.results, large.results, strict=False)]
    return (
        all(a == b for a, b in types)
        and not small.regions
        and _attributes(small) == _attributes(large)
    )


def _attributes(op: Operation) -> dict[str, object]:
    own = {name: value for name, value in op.attributes.items() if name != NAME}
    return {**own, **op.properties}


def _structures(small: Operation, large: Operation) -> str | None:
    assert isinstance(small, StructuredOp | IndirectOp)
    assert isinstance(large, StructuredOp | IndirectOp)
    a, b = small.structure(), large.structure()
    if a.results != b.results or len(a.stages) != len(b.stages):
        return _ANOTHER_WAY
    for first, second in zip(a.stages, b.stages, strict=True):
        reason = _stages(first, second, (small, a), (large, b))
        if reason is not None:
            return reason
    return None


_Owner = tuple[Operation, Structure]


def _stages(small: Stage, large: Stage, small_of: _Owner, large_of: _Owner) -> str | None:
    if (small.kinds, small.body, small.combine) != (large.kinds, large.body, large.combine):
        return _ANOTHER_WAY
    for dim in small.reduction_dims:
        if small.extents[dim] != large.extents[dim]:
            return "sums over the dim"
    if len(small.reads) != len(large.reads):
        return _ANOTHER_WAY
    if _common_points(small.result, small) != _common_points(large.result, small):
        return "writes other positions at another size"
    for read, other in zip(small.reads, large.reads, strict=True):
        if read.source != other.source or (
            _common_points(read.map, small) != _common_points(other.map, small)
        ):
            return "reads other positions at another size"
        if not _same_padding(
            read, other, _source_shape(read, small_of), _source_shape(other, large_of)
        ):
            return "pads the dim itself"
    for node in walk(small.body):
        if isinstance(node, Load):
            a, b = (owner[0].operands[node.operand] for owner in (small_of, large_of))
            if not _loads_prefix(node, shape_of(a), shape_of(b), small):
                return "looks up elements along the dim"
    return None


def _loads_prefix(
    load: Load, small_shape: Sequence[int], large_shape: Sequence[int], stage: Stage
) -> bool:
    """Return whether all that `stage` loads lies within the small source, wherever that is smaller.

    There the index is the number of an iteration, or a literal. A computed index may count from the
    end, or be outside of the small source but inside of the large one.
    """
    return len(small_shape) == len(large_shape) and all(
        a == b
        or (isinstance(index, Position) and stage.extents[index.dim] <= a)
        or (isinstance(index, Literal) and 0 <= index.value < a)
        for index, a, b in zip(load.indices, small_shape, large_shape, strict=True)
    )


def _common_points(map: AffineMap, stage: Stage) -> AffineMap:
    """Return the map where only the first iteration of a dim counts if `stage` has but one."""
    dims = [
        AffineConstantExpr(0) if extent == 1 else AffineDimExpr(dim)
        for dim, extent in enumerate(stage.extents)
    ]
    return map.replace_dims_and_symbols(dims, [], len(dims), 0)


def _source_shape(access: Access, owner: _Owner) -> tuple[int, ...]:
    op, structure = owner
    if isinstance(access.source, OperandSource):
        return shape_of(op.operands[access.source.index])
    return structure.stages[access.source.index].result_shape


def _same_padding(
    small: Access, large: Access, small_shape: Sequence[int], large_shape: Sequence[int]
) -> bool:
    """Return whether the elements around the small source are also there in the large one."""
    if small.padding is None or large.padding is None:
        return small.padding is large.padding
    a, b = small.padding, large.padding
    rows = zip(small_shape, large_shape, a.high, b.high, strict=True)
    return (a.low, a.value) == (b.low, b.value) and all(
        m == 0 if s != t else m == n for s, t, m, n in rows
    )


def _reshapes(small: Operation, large: Operation) -> str | None:
    """Return the dims before the one that changes must hold as many elements in source and
    result.
    """
    sources = shape_of(small.operands[0]), shape_of(large.operands[0])
    results = shape_of(small.results[0]), shape_of(large.results[0])
    before = [_elements_before_change(*shapes) for shapes in (sources, results)]
    if None in before or before[0] != before[1]:
        return "moves the dim to another position"
    return None


def _elements_before_change(small: Sequence[int], large: Sequence[int]) -> int | None:
    changed = [d for d, (a, b) in enumerate(zip(small, large, strict=True)) if a != b]
    return int(np.prod(small[: changed[0]])) if len(changed) == 1 else None


def _concatenations(small: ConcatOp, large: ConcatOp) -> str | None:
    dim = small.dim.value.data
    if dim != large.dim.value.data:
        return _ANOTHER_WAY
    extents = [[shape_of(value)[dim] for value in op.inputs] for op in (small, large)]
    return None if extents[0] == extents[1] else "joins tensors along the dim"


def _selections(small: TopKOp, large: TopKOp) -> str | None:
    """Prove an op that selects among the elements along `dim`, which must be equally many."""
    if _attributes(small) != _attributes(large):
        return _ANOTHER_WAY
    dim = small.dim.value.data
    same = shape_of(small.input)[dim] == shape_of(large.input)[dim]
    return None if same else "selects along the dim"


def _scattered_elements(small: ScatterElementsOp, large: ScatterElementsOp) -> str | None:
    """Prove a scatter of elements along `dim` alone; positions along other dims do not change.

    Writes of the large op within the small data must come from the small indices.
    """
    if _attributes(small) != _attributes(large):
        return _ANOTHER_WAY
    moved = small.dim.value.data
    data, indices = shape_of(small.data), shape_of(small.indices)
    others = shape_of(large.data), shape_of(large.indices)
    for dim, (extent, written) in enumerate(zip(data, indices, strict=True)):
        if dim == moved and (extent, written) != (others[0][dim], others[1][dim]):
            return "writes along the dim"
        if written != min(extent, others[1][dim]):
            return "writes other places at another size"
    return None


def _scattered_slices(small: ScatterNdOp, large: ScatterNdOp) -> str | None:
    """Prove a scatter of equally many slices, at tuples of indices that count in the same dims."""
    if _attributes(small) != _attributes(large):
        return _ANOTHER_WAY
    if shape_of(small.indices) != shape_of(large.indices):
        return "writes along the dim"
    counted = shape_of(small.indices)[-1]
    same = shape_of(small.data)[:counted] == shape_of(large.data)[:counted]
    return None if same else "writes along the dim"
