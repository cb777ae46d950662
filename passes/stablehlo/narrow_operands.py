"""Ops of StableHLO that compute with numbers of 8 bits and less, which braid only stores."""

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import f32, is_float, is_stored_only, is_unsigned
from braid.dialects.stablehlo import Stablehlo, StablehloOp

_COMPUTING = frozenset(
    """
    abs acos acosh add and asin asinh atan atanh atan2 cbrt ceil clamp compare convolution cosh
    cosine divide dot dot_general dynamic_iota erf exponential exponential_minus_one floor iota
    is_finite is_inf is_neg_inf is_pos_inf log log_plus_one logistic maximum minimum multiply negate
    not or popcnt power remainder round_nearest_afz round_nearest_even rsqrt shift_left
    shift_right_arithmetic shift_right_logical sign sine sinh sqrt square subtract tan tanh xor
    """.split()  # noqa: SIM905  five lines as a list
)
"""Ops whose results, of numbers with more bits, are converted to those of fewer."""

_ON_BITS = frozenset({"popcnt", "shift_right_logical"})
"""Ops that see the sign of a number as one bit among others."""

_OPS = {op.name: op for op in Stablehlo.operations}


def widen_narrow_numbers(ops: Iterable[StablehloOp]) -> None:
    """Let ops compute with i8, ui8 and f32 in place of i2, i4, ui2, ui4 and floats of 8 bits.

    Operands are converted before, and results after. Integers keep their low bits, which are those
    of a sum, product or shift of two bytes; floats are rounded once.
    """
    for op in ops:
        if op.short_name() in _COMPUTING and any(map(_is_narrow, (*op.operands, *op.results))):
            _widen(op)


def _is_narrow(value: SSAValue) -> bool:
    type: Attribute = value.type
    return isinstance(type, TensorType) and is_stored_only(cast(AnyTensor, type).element_type)


def _widen(op: StablehloOp) -> None:
    on_bits = op.short_name() in _ON_BITS
    for index, value in enumerate(list(op.operands)):
        if _is_narrow(value):
            op.operands[index] = _converted(value, op, on_bits=on_bits)
    for result in [result for result in op.results if _is_narrow(result)]:
        declared = result.type
        result = Rewriter.replace_value_with_new_type(result, _widened(declared, on_bits))
        own = _unsigned(declared) if on_bits else declared
        users = list(result.uses)
        found = _insert_after(op, "convert", result, own)
        if own != declared:
            found = _insert_after(cast(Operation, found.owner), "bitcast_convert", found, declared)
        for use in users:
            use.operation.operands[use.index] = found


def _converted(value: SSAValue, op: Operation, *, on_bits: bool) -> SSAValue:
    if on_bits and value.type != _unsigned(value.type):
        value = _insert(InsertPoint.before(op), "bitcast_convert", value, _unsigned(value.type), op)
    type = _widened(value.type, on_bits)
    return _insert(InsertPoint.before(op), "convert", value, type, op)


def _widened(type: Attribute, on_bits: bool) -> Attribute:
    element_type = cast(AnyTensor, type).element_type
    if is_float(element_type):
        return _with_elements(type, f32)
    is_plain = on_bits or is_unsigned(element_type)
    return _with_elements(
        type, IntegerType(8, Signedness.UNSIGNED if is_plain else Signedness.SIGNLESS)
    )


def _unsigned(type: Attribute) -> Attribute:
    element_type = cast(IntegerType, cast(AnyTensor, type).element_type)
    return _with_elements(type, IntegerType(element_type.width.data, Signedness.UNSIGNED))


def _with_elements(type: Attribute, element_type: Attribute) -> AnyTensor:
    tensor = cast(AnyTensor, type)
    return TensorType(element_type, tensor.get_shape(), tensor.encoding)


def _insert_after(op: Operation, name: str, value: SSAValue, type: Attribute) -> SSAValue:
    return _insert(InsertPoint.after(op), name, value, type, op)


def _insert(
    place: InsertPoint, name: str, value: SSAValue, type: Attribute, beside: Operation
) -> SSAValue:
    made = _OPS[f"stablehlo.{name}"].create(operands=[value], result_types=[type])
    made.location = beside.location
    Rewriter.insert_op(made, place)
    return made.results[0]
