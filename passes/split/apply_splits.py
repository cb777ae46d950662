"""`apply-splits`: replaces ops by the parts that were decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from braid.analysis.locations import source_location
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, ReshapeOp, SliceOp
from braid.errors import BraidError
from braid.passes.split.addressing import joined, slice_of
from braid.passes.split.rules import SplitDim, part_type, split_dims
from braid.passes.split.tile import SPLIT, Part, Tile


def decided_counts(op: Operation, dims: Mapping[int, SplitDim]) -> dict[int, int]:
    """The parts per dim. Raises BraidError for a decision that does not fit the op."""
    attribute = op.attributes[SPLIT]
    if not isinstance(attribute, DenseArrayBase):
        raise _error(op, f"{SPLIT} is {attribute}, expected array<i64>")
    counts = dict(enumerate(cast(DenseArrayBase[IntegerType], attribute).get_values()))
    for dim, count in counts.items():
        if count == 1:
            continue
        if dim not in dims:
            raise _error(op, f"{SPLIT} splits dim {dim}; expected one of {sorted(dims)}")
        most = dims[dim].extent // dims[dim].unit
        if not 1 <= count <= most:
            raise _error(op, f"{SPLIT} splits dim {dim} into {count} parts, expected 1 to {most}")
    return {dim: count for dim, count in counts.items() if count > 1}


def _error(op: Operation, message: str) -> BraidError:
    return BraidError(
        message, location=source_location(op), hint="run select-splits, or remove the attribute"
    )


def split(builder: Builder, op: TensorOp, counts: Mapping[int, int]) -> SSAValue:
    """Inserts the parts of `op` (`op` itself if there is one) and what joins them.

    Returns the whole result.

    Splits along one dim after the other, so that the parts of a dim are joined before those of
    the dims before it.
    """
    if all(count == 1 for count in counts.values()):
        return builder.insert(op).results[0]
    dims = {dim.dim: dim for dim in split_dims(op, reductions=True)}
    number = next(dim for dim in dims if counts.get(dim, 1) > 1)
    dim = dims[number]
    rest = {other: count for other, count in counts.items() if other != number}
    values: list[SSAValue] = []
    for part in dim.parts(counts[number]):
        tile = dim.tile(part)
        if tile is None:
            raise _error(op, f"dim {number} cannot be split into {counts[number]} parts")
        made = _part_of(builder, op, part, tile)
        values.append(split(builder, made, rest))
        if made.parent is None:  # its own parts took its place
            made.erase()
    if dim.combine is None:
        return joined(builder, values, number)
    total = values[0]
    for value in values[1:]:
        total = builder.insert(elementwise(dim.combine, total, value)).results[0]
    return total


def _part_of(builder: Builder, op: TensorOp, part: Part, tile: Tile) -> TensorOp:
    """`op` on a part of its operands, not inserted yet."""
    slices: dict[tuple[SSAValue, Part], SSAValue] = {}
    operands: list[SSAValue] = []
    for index, value in enumerate(op.operands):
        needed = tile.operands.get(index)
        if needed is not None:
            if (value, needed) not in slices:
                slices[value, needed] = slice_of(builder, value, needed)
            value = slices[value, needed]
        operands.append(value)
    attributes: dict[str, Attribute] = {**op.attributes, **tile.attributes}
    attributes.pop(SPLIT, None)
    made = type(op).create(
        operands=operands, result_types=[part_type(op, part)], attributes=attributes
    )
    made.location = op.location
    return made


def erase_unused_addressing(module: ModuleOp) -> None:
    """Erases slices, concatenations and reshapes that nothing reads any more, readers first."""
    addressing = [op for op in module.walk() if isinstance(op, SliceOp | ConcatOp | ReshapeOp)]
    for op in reversed(addressing):
        if not any(result.uses for result in op.results):
            op.detach()
            op.erase()


@dataclass(frozen=True)
class ApplySplitsPass(ModulePass):
    """Replaces every op with `braid.split` by its parts, slices of operands, and concatenations.

    In: `braid.split`, as `select-splits` writes it. Out: parts of the same kind without it. Where
    an op reads what a split op makes, cut at the same places, it reads the parts. Partial results
    of reduced dims are accumulated. Raises BraidError for a decision that does not fit the op.

    ```mlir
    %y = braid.exp %x {braid.split = array<i64: 2, 1>} : (tensor<8x9xf32>) -> tensor<8x9xf32>
    ```
    """

    name = "apply-splits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Checks all decisions, then replaces the ops."""
        decided: list[tuple[TensorOp, dict[int, int]]] = []
        for each in op.walk():
            if SPLIT in each.attributes:
                dims = {dim.dim: dim for dim in split_dims(each, reductions=True)}
                counts = decided_counts(each, dims)
                decided += [(each, counts)] if isinstance(each, TensorOp) else []
        for each, counts in decided:
            if counts:
                whole = split(Builder(InsertPoint.before(each)), each, counts)
                whole.name_hint = each.results[0].name_hint
                each.results[0].replace_all_uses_with(whole)
                each.detach()
                each.erase()
            else:
                del each.attributes[SPLIT]
        erase_unused_addressing(op)
