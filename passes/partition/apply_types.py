"""`apply-types`: ops in the types that devices compute in, with conversions around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.clusters import clustered_blocks
from braid.dialects.braid.attribute_names import CANDIDATES, COMPUTE_TYPE
from braid.dialects.braid.base import TensorOp, element_type_of, set_result_types
from braid.dialects.braid.clusters import Placement, placement_of, set_placement, tolerance_of
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.opaque import OpaqueOp
from braid.support.errors import UnsupportedError
from braid.targets.costs.backend_support import is_supported
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Target

CONVERSIONS = ("braid.cast", "braid.bitcast")
"""The names of the ops that say themselves which types they have."""
_FLOATS = (Float16Type, BFloat16Type, Float32Type, Float64Type)
"""The types of floats that are converted; integers and narrower floats stay as they are."""


@dataclass(frozen=True)
class ApplyTypesPass(ModulePass):
    """Computes ops in their `braid.compute_type`, with `braid.cast` before and after them.

    Values are handed on between ops in the type that both compute in. Values between clusters are
    transferred in the narrower type, as far as the devices convert: the conversion is on the side
    that makes transfers smaller, and parameters are converted at compile time. In:
    `braid.compute_type` as `select-types` writes it. Out: none; `braid.tolerance` stays on ops.
    Raises UnsupportedError for an op that is not one in this type.

    ```mlir
    %0 = braid.exp %x {braid.compute_type = f16} : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %h = braid.cast %x : (tensor<4xf32>) -> tensor<4xf16>
    %e = braid.exp %h : (tensor<4xf16>) -> tensor<4xf16>
    %0 = braid.cast %e : (tensor<4xf16>) -> tensor<4xf32>
    ```
    """

    name = "apply-types"

    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert block by block."""
        target, blocks = target_of(op, self.target), list(clustered_blocks(op))
        counts: dict[str, int] = {}
        worst = 0.0
        conversions = 0
        for block in blocks:
            work = _Conversions(block, target)
            for inner in list(block.ops):
                if (wanted := inner.attributes.pop(COMPUTE_TYPE, None)) is None:
                    continue
                if (new := work.convert(inner, wanted)) is not None:
                    where = f"in {wanted} on {device_of(new, target).name}"
                    counts[where] = counts.get(where, 0) + 1
                    worst = max(worst, tolerance_of(new))
            conversions += work.finish()
        if counts:
            each = ", ".join(f"{count} ops {where}" for where, count in counts.items())
            emit_remark(
                op,
                self.name,
                f"{each}; {conversions} conversions, results may differ by {worst:g}",
                ops=sum(counts.values()),
                conversions=conversions,
                tolerance=worst,
            )


@dataclass
class _Conversions:
    """The conversions in one block, by value, type and cluster."""

    block: Block
    target: Target
    _made: dict[tuple[SSAValue, Attribute, Placement | None], Operation] = field(
        default_factory=dict[tuple[SSAValue, Attribute, Placement | None], Operation]
    )
    _back: list[Operation] = field(default_factory=list[Operation])
    """Conversions to the types that results had."""

    def convert(self, op: Operation, wanted: Attribute) -> Operation | None:
        """Return the op that replaces `op`; None if none of its values has another type."""
        operands = [self._in_type(value, wanted, op) for value in op.operands]
        if operands == list(op.operands) or isinstance(op, OpaqueOp):
            return None
        new = op.clone(dict(zip(op.operands, operands, strict=True)))
        if not isinstance(new, TensorOp) or op.name in CONVERSIONS:
            raise _not_in(op, wanted)
        try:
            set_result_types(new, new.infer_result_types())
            new.verify_()
        except VerifyException as error:
            raise _not_in(op, wanted, str(error)) from error
        self.block.insert_op_before(new, op)
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
            if result.type == old.type:
                old.replace_all_uses_with(result)
                continue
            back = self._cast(result, element_type_of(old), op, placement_of(op))
            self._back.append(back)
            old.replace_all_uses_with(back.results[0])
        op.detach()
        op.erase()
        return new

    def finish(self) -> int:
        """Let each cluster convert what it reads, where that is wider; return the number of
        conversions.

        A value read in the type in which it was computed needs no conversion.
        """
        for back in self._back:
            made = back.operands[0]
            if _bits(made) < _bits(back.results[0]):
                for reader in self._other_clusters(back):
                    placement = placement_of(reader)
                    assert placement is not None
                    own = self._cast(made, element_type_of(back.results[0]), back, placement)
                    reader.operands = [
                        own.results[0] if value is back.results[0] else value
                        for value in reader.operands
                    ]
        count = 0
        for cast_op in reversed([*self._made.values()]):
            if cast_op.results[0].uses:
                count += 1
            else:
                cast_op.detach()
                cast_op.erase()
        return count

    def _other_clusters(self, back: Operation) -> Iterator[Operation]:
        """Yield the ops of other clusters of the block that read it, on devices that convert."""
        for reader in dict.fromkeys(use.operation for use in back.results[0].uses):
            placement = placement_of(reader)
            if reader.parent is not self.block or placement in (None, placement_of(back)):
                continue
            if is_supported(back, self.target.backend_of(device_of(reader, self.target))):
                yield reader

    def _in_type(self, value: SSAValue, wanted: Attribute, reader: Operation) -> SSAValue:
        """Return `value` as `reader` computes with it."""
        if not isinstance(value.type, TensorType):
            return value
        given = element_type_of(value)
        if not isinstance(given, _FLOATS) or given == wanted:
            return value
        maker = value.owner
        if isinstance(maker, Operation) and maker in self._back:
            made = maker.operands[0]
            if element_type_of(made) == wanted:
                return made
        return self._cast(value, wanted, reader, self._side(value, wanted, reader)).results[0]

    def _side(self, value: SSAValue, wanted: Attribute, reader: Operation) -> Placement | None:
        """Return the cluster that converts `value`: its maker's where that makes less to
        transfer.
        """
        own, maker = placement_of(reader), value.owner
        if not isinstance(maker, Operation) or maker.parent is not self.block:
            return own
        made = placement_of(maker)
        if made is None or made == own or _width(wanted) >= _bits(value):
            return own
        others = {use.operation for use in value.uses} - {reader}
        if any(placement_of(o) == own and COMPUTE_TYPE not in o.attributes for o in others):
            return own  # its type at the boundary does not change
        trial = elementwise("cast", value, element_type=wanted)
        takes = is_supported(trial, self.target.backend_of(device_of(maker, self.target)))
        trial.erase()
        return made if takes else own

    def _cast(
        self, value: SSAValue, to: Attribute, near: Operation, where: Placement | None
    ) -> Operation:
        """Return a conversion in this cluster, the one that there is or a new one before `near`."""
        key = (value, to, where)
        if key not in self._made:
            op = elementwise("cast", value, element_type=to)
            op.location = near.location
            if where is not None:
                set_placement(op, where)
                backend = self.target.backend_of(self.target.device(where.device))
                if not is_supported(op, backend):
                    # A device that computes in a type converts to it, whatever its list says.
                    op.attributes[CANDIDATES] = DictionaryAttr({backend.name: IntegerAttr(1, i64)})
            maker = value.owner
            if isinstance(maker, Operation) and maker.parent is self.block:
                self.block.insert_op_after(op, maker)
            else:
                first = self.block.first_op
                assert first is not None
                self.block.insert_op_before(op, first)
            self._made[key] = op
        return self._made[key]


def _bits(value: SSAValue) -> int:
    return _width(element_type_of(value))


def _width(kind: Attribute) -> int:
    return cast(AnyFloat, kind).bitwidth


def _not_in(op: Operation, wanted: Attribute, why: str = "") -> UnsupportedError:
    return UnsupportedError(
        f"'{op.name}' op cannot be computed in {wanted}" + (f": {why}" if why else ""),
        location=source_location(op),
        hint="leave it out of the entry with 'computes', or out of that device",
    )
