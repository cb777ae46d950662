"""Checks of open sizes that a run makes where it takes a branch."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.attribute_names import BRANCH_SIZE_CHECKS
from braid.dialects.braid.sizes import SizesAttr
from braid.lowering.host.failures import Failures
from braid.lowering.host.open_sizes import OpenSizes
from braid.lowering.host.pointers import PointerBuilder

Checks = ArrayAttr[DictionaryAttr]
"""Entries as those of `braid.size_checks`."""


class BranchChecks:
    """Emits the checks of `braid.branch_size_checks`.

    The ops of a branch whose checks fail are not run: they would read and write beyond buffers.
    """

    def __init__(self, sizes: OpenSizes, failures: Failures) -> None:
        self._sizes = sizes
        self._failures = failures

    def of(self, op: Operation, region: int) -> Checks | None:
        """Return the checks in a region of `op`, None without any."""
        held = op.attributes.get(BRANCH_SIZE_CHECKS)
        if not isinstance(held, ArrayAttr):
            return None
        return cast("ArrayAttr[Checks]", held).data[region] or None

    def guarded(
        self, checks: Checks, types: Sequence[Attribute], branch: Region, builder: PointerBuilder
    ) -> Sequence[SSAValue]:
        """Run `branch` where all checks hold; return its scalars of these types.

        Else the run fails with the message of the first one that does not, and scalars are 0.
        """
        holding = [self._holds(check, builder) for check in checks]
        all_hold = holding[0]
        for each in holding[1:]:
            all_hold = builder.emit(arith.AndIOp(all_hold, each))
        otherwise = Block()
        inside = PointerBuilder(InsertPoint.at_end(otherwise))
        # The last message stays.
        for check, holds in reversed(list(zip(checks, holding, strict=True))):
            failing = Block()
            message = check.data["message"]
            assert isinstance(message, StringAttr)
            self._failures.emit(message.data, PointerBuilder(InsertPoint.at_end(failing)))
            failing.add_op(scf.YieldOp())
            inside.insert(scf.IfOp(holds, [], [Block([scf.YieldOp()])], [failing]))
        inside.insert(scf.YieldOp(*(inside.emit(_zero(type)) for type in types)))
        return builder.insert(scf.IfOp(all_hold, types, branch, Region(otherwise))).results

    def _holds(self, check: DictionaryAttr, builder: PointerBuilder) -> SSAValue:
        size = check.data["size"]
        assert isinstance(size, SizesAttr)
        (extent,) = size.get_values()
        kind = "eq" if "zero" in check.data else "sge"
        value = self._sizes.value(extent)
        return builder.emit(arith.CmpiOp(value, builder.constant(0), kind))


def _zero(type: Attribute) -> arith.ConstantOp:
    if isinstance(type, IntegerType | IndexType):
        return arith.ConstantOp(IntegerAttr(0, cast("IndexType", type)))
    return arith.ConstantOp(FloatAttr(0.0, cast("AnyFloat", type)))
