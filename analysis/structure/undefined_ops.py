"""Defined behaviour for ops of upstream dialects that MLIR leaves undefined for some operands.

An index outside of a tensor, a division by zero and a loop whose step is not positive are undefined
in MLIR. In an untrusted model they must neither access memory outside of a tensor nor end the
process. Models where constants make an op undefined are rejected; other ops are rewritten.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.base import AnyTensor
from braid.support.errors import BraidError

_SIGNED = frozenset({"arith.divsi", "arith.remsi", "arith.ceildivsi", "arith.floordivsi"})
_DIVISIONS = _SIGNED | {"arith.divui", "arith.remui", "arith.ceildivui"}


def refuse_undefined(module: Operation) -> None:
    """Raise BraidError for the first op of a model that constant operands make undefined."""
    for op in module.walk():
        fault = _fault(op) if isinstance(op, scf.ForOp | tensor.ExtractOp) else None
        if fault is not None:
            raise BraidError(f"'{op.name}' op {fault}", location=source_location(op))


def _fault(op: scf.ForOp | tensor.ExtractOp) -> str | None:
    """Return the undefined effect of `op` with constant operands, None if there is none."""
    if isinstance(op, scf.ForOp):
        step = constant_integer(op.step)
        wrong = step is not None and step <= 0
        return f"has a step of {step}, expected a positive number" if wrong else None
    for value, extent in _indexed(op):
        index = constant_integer(value)
        if extent == 0:
            return f"reads one element of {op.tensor.type}, which has none"
        if extent > 0 and index is not None and not 0 <= index < extent:
            return f"reads at index {index} of {op.tensor.type}, expected 0 to {extent - 1}"
    return None


def constant_integer(value: SSAValue) -> int | None:
    """Return the value of an integer constant, also through `arith.index_cast`, else None."""
    owner = value.owner
    if isinstance(owner, arith.IndexCastOp):
        return constant_integer(owner.input)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def define(op: Operation) -> None:
    """Make `op` defined for all operands, by ops that are inserted before it.

    Indices of `tensor.extract` are clamped to the tensor. A division that is undefined, by zero or
    of the least number by -1, divides by 1 instead.

    Raises:
        BraidError: a tensor that is read has no elements or an unknown size, or a slice or padding
            is not within its tensors.

    """
    if (inside := _INSIDE.get(op_name(op))) is not None and not inside(op):
        raise BraidError(
            f"'{op_name(op)}' op is not within its tensors: {_types(op)}",
            location=source_location(op),
        )
    if isinstance(op, tensor.ExtractOp):
        _clamp(op)
    elif op_name(op) in _DIVISIONS:
        _divide_by_another(op)


def _types(op: Operation) -> str:
    return ", ".join(str(type) for type in (*op.operand_types, *op.result_types))


def _mixed_static(op: Operation, name: str, segment: int) -> list[int | None]:
    """Return the values of a mixed static and dynamic list, such as the offsets of a slice.

    `name` is the attribute of the static values, `segment` the operand segment of the dynamic ones.
    A dynamic value that is not constant is None; a malformed attribute gives `[None]`.
    """
    attributes = {**op.attributes, **op.properties}
    static, counts = (_integers(attributes.get(key)) for key in (name, "operandSegmentSizes"))
    if static is None or counts is None:
        return [None]
    first = sum(counts[:segment])
    operands = iter(op.operands[first:])
    return [
        constant_integer(next(operands)) if number == DYNAMIC_INDEX else number for number in static
    ]


def _integers(attribute: Attribute | None) -> tuple[int, ...] | None:
    if not isinstance(attribute, DenseArrayBase):
        return None
    return tuple(cast("DenseArrayBase[Any]", attribute).get_values())


def _shape(type: Attribute) -> tuple[int, ...] | None:
    return cast(AnyTensor, type).get_shape() if isinstance(type, TensorType) else None


def _slice_is_inside(op: Operation, whole: Attribute, first: int) -> bool:
    names = ("static_offsets", "static_sizes", "static_strides")
    numbers = [_mixed_static(op, name, first + place) for place, name in enumerate(names)]
    shape = _shape(whole)
    if shape is None or any(len(each) != len(shape) for each in numbers):
        return False
    for extent, offset, size, stride in zip(shape, *numbers, strict=True):
        if offset is None or size is None or stride is None or offset < 0 or size < 0 or stride < 1:
            return False
        if size and offset + (size - 1) * stride >= extent:
            return False
    return True


def _extract_is_inside(op: Operation) -> bool:
    return _slice_is_inside(op, op.operands[0].type, 1)


def _insertion_is_inside(op: Operation) -> bool:
    return _slice_is_inside(op, op.operands[1].type, 2)


def _element_is_inside(op: Operation) -> bool:
    shape = _shape(op.operands[1].type)
    indices = [constant_integer(value) for value in op.operands[2:]]
    return shape is not None and all(
        index is not None and 0 <= index < extent
        for index, extent in zip(indices, shape, strict=True)
    )


def _padding_is_inside(op: Operation) -> bool:
    low, high = _mixed_static(op, "static_low", 1), _mixed_static(op, "static_high", 2)
    old, new = _shape(op.operands[0].type), _shape(op.results[0].type)
    if old is None or new is None or any(len(each) != len(old) for each in (low, high, new)):
        return False
    return all(
        a is not None and b is not None and min(a, b) >= 0 and a + before + b == after
        for before, a, b, after in zip(old, low, high, new, strict=True)
    )


_INSIDE: dict[str, Callable[[Operation], bool]] = {
    "tensor.extract_slice": _extract_is_inside,
    "tensor.insert_slice": _insertion_is_inside,
    "tensor.insert": _element_is_inside,
    "tensor.pad": _padding_is_inside,
}


def _indexed(op: tensor.ExtractOp) -> Iterator[tuple[SSAValue, int]]:
    return zip(op.indices, cast(AnyTensor, op.tensor.type).get_shape(), strict=True)


def _clamp(op: tensor.ExtractOp) -> None:
    """Clamp the indices of `op` to its tensor, where they are not constants within it."""
    for place, (value, extent) in enumerate(_indexed(op), 1):
        if extent < 1:
            raise BraidError(
                f"'{op.name}' op reads one element of {op.tensor.type}, expected a tensor with a "
                "known number of elements, at least 1",
                location=source_location(op),
            )
        index = constant_integer(value)
        if index is None or not 0 <= index < extent:
            last = _constant(extent - 1, value.type)
            inside = arith.MinUIOp(value, last.result)  # a negative index is large as unsigned
            _insert_before(op, last, inside)
            op.operands[place] = inside.result


def _divide_by_another(op: Operation) -> None:
    """Replace the divisor by 1 where it is 0, or -1 with the least number as dividend."""
    dividend, divisor = op.operands
    known = constant_integer(divisor)
    if known is not None and known not in (0, -1):
        return
    type, element = divisor.type, _element_type(divisor.type)
    zero, one = _constant(0, type), _constant(1, type)
    bad = arith.CmpiOp(divisor, zero.result, "eq")
    _insert_before(op, zero, one, bad)
    if op_name(op) in _SIGNED:
        width = cast(IntegerType, element).width.data if isinstance(element, IntegerType) else 64
        least, minus = _constant(-(2 ** (width - 1)), type), _constant(-1, type)
        is_least = arith.CmpiOp(dividend, least.result, "eq")
        is_minus = arith.CmpiOp(divisor, minus.result, "eq")
        both = arith.AndIOp(is_least.result, is_minus.result)
        bad = arith.OrIOp(bad.result, both.result)
        _insert_before(op, least, minus, is_least, is_minus, both, bad)
    other = arith.SelectOp(bad.result, one.result, divisor)
    _insert_before(op, other)
    op.operands[1] = other.result


def _element_type(type: Attribute) -> Attribute:
    return cast(AnyTensor, type).element_type if isinstance(type, TensorType) else type


def _constant(value: int, type: Attribute) -> arith.ConstantOp:
    if isinstance(type, TensorType):
        return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(cast(AnyTensor, type), [value]))
    assert isinstance(type, IntegerType | IndexType)
    return arith.ConstantOp(IntegerAttr(value, cast(IntegerType | IndexType, type)))


def _insert_before(op: Operation, *ops: Operation) -> None:
    Rewriter.insert_op(ops, InsertPoint.before(op))
