"""`apply-splits`: replaces ops by the parts that were decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.tiles.op_tiles import iteration_domain, tiled
from braid.dialects.braid.attribute_names import SPLIT
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import set_result_types
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.measured_times import drop_measured
from braid.dialects.braid.movement import ConcatOp, ReshapeOp, SliceOp
from braid.passes.split.addressing import Slicer, insert_like, joined
from braid.passes.split.split_dims import Part, PartTile, SplitDim, split_dims
from braid.support.errors import BraidError


def decided_counts(op: Operation) -> dict[int, int]:
    """Return the parts per dim that is split, in order of preference.

    Raises BraidError for a decision that does not fit the op.
    """
    attribute = op.attributes[SPLIT]
    if not isinstance(attribute, DenseArrayBase):
        raise _error(op, f"{SPLIT} is {attribute}, expected array<i64>")
    entries = enumerate(cast(DenseArrayBase[IntegerType], attribute).get_values())
    counts = {dim: count for dim, count in entries if count != 1}
    dims = {dim.dim: dim for dim in split_dims(op, reductions=True, among=counts)}
    for dim, count in counts.items():
        if dim not in dims:
            possible = sorted(each.dim for each in split_dims(op, reductions=True))
            raise _error(op, f"{SPLIT} splits dim {dim}; expected one of {possible}")
        most = dims[dim].extent // dims[dim].unit
        if not 1 <= count <= most:
            raise _error(op, f"{SPLIT} splits dim {dim} into {count} parts, expected 1 to {most}")
    return {dim: counts[dim] for dim in dims}


def _error(op: Operation, message: str) -> BraidError:
    return BraidError(
        message, location=source_location(op), hint="run select-splits, or remove the attribute"
    )


class _Splitter:
    """Inserts parts of ops; equal slices of one value are made once."""

    def __init__(self, builder: Builder, through_concats: bool) -> None:
        self.builder = builder
        self.slicer = Slicer(builder, through_concats)
        self.slices: dict[tuple[SSAValue, Part], SSAValue] = {}

    def split(self, op: Operation, counts: Mapping[int, int]) -> list[SSAValue]:
        """Insert the parts of `op` (`op` itself if there is only one) and the op that joins them.

        Returns the whole results.

        Splits along the dims of `counts` in turn, so that the parts of a dim are joined before
        those of the dims before it.
        """
        if not counts:
            return list(self.builder.insert(op).results)
        (number, count), *rest = counts.items()
        dim = SplitDim(op, number, iteration_domain(op))
        parts = [self._part(op, dim, part, dict(rest)) for part in dim.parts(count)]
        return [self._joined(dim, values) for values in zip(*parts, strict=True)]

    def _part(
        self, op: Operation, dim: SplitDim, part: Part, rest: Mapping[int, int]
    ) -> list[SSAValue]:
        """Return the results of one part of `op`, split along the other dims."""
        tile = dim.tile(part)
        if tile is None:
            raise _error(op, f"dim {dim.dim} cannot be split where {part.start} begins a part")
        made = self._op_of(op, tile)
        values = self.split(made, rest)
        if made.parent is None:  # its own parts took its place
            made.erase()
        return values

    def _op_of(self, op: Operation, part: PartTile) -> Operation:
        """Return `op` on a part of its operands, not inserted yet."""
        operands = [
            self._slice(value, part.operands[index]) if index in part.operands else value
            for index, value in enumerate(op.operands)
            if part.tile.operands[index] is not None
        ]
        made = tiled(op, part.tile, part.box, operands)
        layouts = [layout_of(result.type) for result in op.results]
        types = zip(made.result_types, layouts, strict=True)
        set_result_types(made, [with_layout(type, layout) for type, layout in types])
        made.attributes.pop(SPLIT, None)
        drop_measured(made)
        return made

    def _slice(self, value: SSAValue, part: Part) -> SSAValue:
        if (value, part) not in self.slices:
            self.slices[value, part] = self.slicer.slice(value, part)
        return self.slices[value, part]

    def _joined(self, dim: SplitDim, values: Sequence[SSAValue]) -> SSAValue:
        if dim.combine is None:
            return joined(self.builder, values, dim.dim)
        total = values[0]
        for value in values[1:]:
            total = insert_like(self.builder, elementwise(dim.combine, total, value), total)
        return total


def erase_unused_addressing(module: ModuleOp) -> None:
    """Erase slices, concatenations and reshapes that nothing reads any more, readers first."""
    addressing = [op for op in module.walk() if isinstance(op, SliceOp | ConcatOp | ReshapeOp)]
    for op in reversed(addressing):
        if not any(result.uses for result in op.results):
            op.detach()
            op.erase()


@dataclass(frozen=True)
class ApplySplitsPass(ModulePass):
    """Replaces every op with `braid.split` by its parts, slices of operands, and concatenations.

    In: `braid.split`, as `select-splits` writes it. Out: parts of the same kind without it. A
    reader of a split op that is cut at the same positions reads the parts; with `through_concats`
    also the parts of a concatenation along another dim. Partial results of reduced dims are
    accumulated. Raises BraidError for a decision that does not fit the op.

    ```mlir
    %y = braid.exp %x {braid.split = array<i64: 2, 1>} : (tensor<8x9xf32>) -> tensor<8x9xf32>
    ```
    """

    name = "apply-splits"

    through_concats: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check all decisions, then replace the ops."""
        decided: list[tuple[Operation, dict[int, int]]] = []
        for each in op.walk():
            if SPLIT in each.attributes:
                for inner in islice(each.walk(), 1, None):
                    inner.attributes.pop(SPLIT, None)  # a group is split as a whole
                decided.append((each, decided_counts(each)))
        for each, counts in decided:
            if counts:
                builder = Builder(InsertPoint.before(each))
                whole = _Splitter(builder, self.through_concats).split(each, counts)
                for result, value in zip(each.results, whole, strict=True):
                    value.name_hint = result.name_hint
                    result.replace_all_uses_with(value)
                each.detach()
                each.erase()
            else:
                del each.attributes[SPLIT]
        erase_unused_addressing(op)
