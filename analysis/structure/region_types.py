"""Checks of ops of `scf` and `tensor` that lowering relies on and xDSL's verifiers lack."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation, Region
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.base import fits, require


def verify_upstream_op(op: Operation) -> None:
    """Raise VerifyException where the types of `op` contradict its regions, shapes or elements."""
    verify = _VERIFIERS.get(type(op))
    if verify is not None:
        verify(op)


def _require_types(what: str, actual: Sequence[Attribute], expected: Sequence[Attribute]) -> None:
    if tuple(actual) != tuple(expected):
        raise VerifyException(f"{what} ({_listed(actual)}), expected ({_listed(expected)})")


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


def _terminator(region: Region, kind: type[Operation]) -> Operation:
    """Return the terminator of a region, which must have one block that ends in op `kind`."""
    blocks = list(region.blocks)
    last = blocks[0].last_op if len(blocks) == 1 else None
    if not isinstance(last, kind):
        raise VerifyException(f"expects regions of one block that ends in '{kind.name}'")
    return last


def _verify_for(op: Operation) -> None:
    carried = op.operand_types[3:]
    _require_types("it carries", carried, op.result_types)
    _require_types(
        "its body yields", _terminator(op.regions[0], scf.YieldOp).operand_types, op.result_types
    )


def _verify_if(op: Operation) -> None:
    then, otherwise = op.regions
    if not otherwise.blocks:
        require(not op.results, "it has results, expected an else region")
    for region in (then, otherwise):
        if region.blocks:
            yielded = _terminator(region, scf.YieldOp).operand_types
            _require_types("a region yields", yielded, op.result_types)


def _verify_while(op: Operation) -> None:
    before, after = op.regions
    condition, last = _terminator(before, scf.ConditionOp), _terminator(after, scf.YieldOp)
    _require_types("its first region takes", before.block.arg_types, op.operand_types)
    _require_types("its first region passes on", condition.operand_types[1:], op.result_types)
    _require_types("its second region takes", after.block.arg_types, op.result_types)
    _require_types("its second region yields", last.operand_types, op.operand_types)


def _shape(type: Attribute) -> tuple[int, ...] | None:
    """Return the shape of a ranked tensor type, None for any other type."""
    return cast("TensorType[Any]", type).get_shape() if isinstance(type, TensorType) else None


def _verify_extract(op: Operation) -> None:
    shape, count = _shape(op.operand_types[0]), len(op.operands) - 1
    if shape is not None:
        require(len(shape) == count, f"{count} indices, expected {len(shape)}")


def _verify_from_elements(op: Operation) -> None:
    shape, count = _shape(op.result_types[0]), len(op.operands)
    if shape is not None:
        wanted = math.prod(shape)
        require(wanted == count, f"{count} elements, expected {wanted} for {op.result_types[0]}")


def _verify_reshaped(op: Operation) -> None:
    before, after = _shape(op.operand_types[0]), _shape(op.result_types[0])
    if before is None or after is None or DYNAMIC_INDEX in (*before, *after):
        return
    counts = math.prod(before), math.prod(after)
    require(counts[0] == counts[1], f"{counts[0]} elements cannot take shape {list(after)}")


def _verify_cast(op: Operation) -> None:
    before, after = _shape(op.operand_types[0]), _shape(op.result_types[0])
    if before is not None and after is not None:
        require(fits(before, after), f"shape {list(before)} cannot be {list(after)}")


_VERIFIERS: Mapping[type[Operation], Callable[[Operation], None]] = {
    scf.ForOp: _verify_for,
    scf.IfOp: _verify_if,
    scf.WhileOp: _verify_while,
    tensor.ExtractOp: _verify_extract,
    tensor.FromElementsOp: _verify_from_elements,
    tensor.ExpandShapeOp: _verify_reshaped,
    tensor.CollapseShapeOp: _verify_reshaped,
    tensor.ReshapeOp: _verify_reshaped,
    tensor.CastOp: _verify_cast,
}
