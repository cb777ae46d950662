"""Conversion of scalar ops of `arith` and `math` to elementwise ops of braid on tensors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import i1, to_numpy
from braid.passes.linalg.narrow_scalars import (
    SCALED,
    UNSIGNED,
    is_narrow,
    narrow_scalar,
    scaled,
)
from braid.passes.linalg.node import UpstreamNode
from braid.passes.linalg.scalar_types import (
    as_unsigned,
    bits_as,
    computed_type,
    predicate_of,
    result_element,
    unsigned_of,
)

Operands = Sequence[SSAValue]
Converter = Callable[[UpstreamNode, Operation, Operands], SSAValue]

SAME_OPS: Mapping[str, str] = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.andi": "and",
    "arith.divf": "div",
    "arith.divsi": "div",
    "arith.maximumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.minimumf": "minimum",
    "arith.minsi": "minimum",
    "arith.mulf": "mul",
    "arith.muli": "mul",
    "arith.negf": "neg",
    "arith.ori": "or",
    "arith.remf": "rem",
    "arith.remsi": "rem",
    "arith.select": "select",
    "arith.subf": "sub",
    "arith.subi": "sub",
    "arith.xori": "xor",
    "math.absf": "abs",
    "math.absi": "abs",
    "math.acos": "acos",
    "math.acosh": "acosh",
    "math.asin": "asin",
    "math.asinh": "asinh",
    "math.atan": "atan",
    "math.atanh": "atanh",
    "math.ceil": "ceil",
    "math.cos": "cos",
    "math.cosh": "cosh",
    "math.erf": "erf",
    "math.exp": "exp",
    "math.floor": "floor",
    "math.isinf": "isinf",
    "math.isnan": "isnan",
    "math.log": "log",
    "math.powf": "pow",
    "math.roundeven": "round",
    "math.rsqrt": "rsqrt",
    "math.sin": "sin",
    "math.sinh": "sinh",
    "math.sqrt": "sqrt",
    "math.tan": "tan",
    "math.tanh": "tanh",
}
"""Ops with the same definition in upstream and braid, under different names."""

_ON_BOOLS = {"add": "xor", "sub": "xor", "mul": "and"}
"""Arithmetic of i1, which is modulo 2. As a signed integer, true is -1 and less than false."""

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
"""Comparisons by the predicate of `arith.cmpi`; the last four are unsigned."""

_ORDERED = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}
"""Comparisons by the predicate of `arith.cmpf`: false, or for `ne` true, if an operand is NaN."""
_NEGATED = {9: "le", 10: "lt", 11: "ge", 12: "gt"}
"""Comparisons whose negation is the predicate of `arith.cmpf`, which is true with a NaN."""


class Scalars:
    """The scalars in the body of a loop nest, as tensors of rank `rank` that broadcast together."""

    def __init__(
        self, node: UpstreamNode, rank: int, outside: Callable[[SSAValue], SSAValue]
    ) -> None:
        self._node, self._rank, self._outside = node, rank, outside
        self.values: dict[SSAValue, SSAValue] = {}
        self._constants: dict[SSAValue, SSAValue] = {}

    def compute(self, block: Block) -> Operands:
        """Return the values that `block` yields; raise NotConvertedError for an unknown op."""
        last = block.last_op
        if last is None:
            self._node.leave()
        return [self.computed(block, operand) for operand in last.operands]

    def computed(self, block: Block, wanted: SSAValue) -> SSAValue:
        """Return the tensor of a scalar of the block, and convert the ops that it depends on."""
        needed: set[SSAValue] = {wanted}
        for op in reversed(list(block.ops)):
            if not needed.isdisjoint(op.results):
                needed.update(op.operands)
        for op in block.ops:
            if op is not block.last_op and not needed.isdisjoint(op.results):
                if len(op.results) != 1:
                    self._node.leave()
                if op.results[0] not in self.values:
                    self.values[op.results[0]] = self._converted(op)
        return self.value(wanted)

    def value(self, scalar: SSAValue) -> SSAValue:
        """Return the tensor of a scalar of the body, or of a constant outside of it."""
        if scalar in self.values:
            return self.values[scalar]
        owner = self._outside(scalar).owner
        if not isinstance(owner, Operation) or op_name(owner) != "arith.constant":
            self._node.leave()
        if scalar not in self._constants:
            self._constants[scalar] = self._constant(owner)
        return self._constants[scalar]

    def _converted(self, op: Operation) -> SSAValue:
        if op_name(op) == "arith.constant":
            return self._constant(op)
        return convert_scalar(self._node, op, [self.value(operand) for operand in op.operands])

    def _constant(self, op: Operation) -> SSAValue:
        value = op.properties.get("value", op.attributes.get("value"))
        if not isinstance(value, IntegerAttr | FloatAttr):
            self._node.leave()
        return number(self._node, cast(Attribute, value), self._rank)


def number(node: UpstreamNode, value: Attribute, rank: int) -> SSAValue:
    """Return a constant tensor of `rank` dims with one element."""
    assert isinstance(value, IntegerAttr | FloatAttr)
    element_type = computed_type(cast(Any, value).type)
    with np.errstate(over="ignore"):
        array = np.array(cast(Any, value).value.data).astype(to_numpy(element_type))
    return node.constant(array.reshape([1] * rank))


def convert_scalar(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    """Return the result of `op` on tensors; raise NotConvertedError if it has no counterpart."""
    if op_name(op) in SCALED:
        return scaled(node, op, operands)
    if is_narrow(op, operands):
        return narrow_scalar(node, op, operands, _computed)
    return _computed(node, op, operands)


def _computed(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    name = op_name(op)
    if name in SAME_OPS:
        return _same(node, SAME_OPS[name], operands)
    if name in UNSIGNED:
        return _on_unsigned(node, UNSIGNED[name], operands)
    convert = _CONVERTERS.get(name)
    if convert is None:
        node.leave()
    return convert(node, op, operands)


def _same(node: UpstreamNode, name: str, operands: Operands) -> SSAValue:
    if element_type_of(operands[-1]) == i1 and name != "select":
        if name in ("maximum", "minimum"):
            name = "and" if name == "maximum" else "or"  # true is -1
        name = _ON_BOOLS.get(name, name)
        if name not in ("and", "or", "xor"):
            node.leave()
    return node.apply(name, *operands)


def _on_unsigned(node: UpstreamNode, name: str, operands: Operands) -> SSAValue:
    """Apply op `name` to the same bits as unsigned integers."""
    element_type = element_type_of(operands[0])
    if element_type == i1:
        if name not in ("maximum", "minimum"):
            node.leave()
        return node.apply("or" if name == "maximum" else "and", *operands)
    given = [as_unsigned(node, value) for value in operands]
    return bits_as(node, node.apply(name, *given), element_type)


def _shift(name: str) -> Converter:
    def convert(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
        if element_type_of(operands[0]) == i1:
            node.leave()
        return node.apply(name, *operands)

    return convert


def _compare_integers(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    predicate = predicate_of(node, op)
    is_bool = element_type_of(operands[0]) == i1
    if predicate >= 6 and not is_bool:
        operands = [as_unsigned(node, value) for value in operands]
    if is_bool and 2 <= predicate < 6:
        operands = list(operands)[::-1]  # true is -1
    return node.apply(_COMPARISONS[predicate], *operands)


def _compare_floats(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    predicate = predicate_of(node, op)
    if predicate in _ORDERED:
        return node.apply(_ORDERED[predicate], *operands)
    if predicate in _NEGATED:
        return node.apply("not", node.apply(_NEGATED[predicate], *operands))
    a, b = operands
    match predicate:
        case 6:  # one
            return node.apply("or", node.apply("lt", a, b), node.apply("gt", a, b))
        case 8:  # ueq
            return node.apply(
                "not", node.apply("or", node.apply("lt", a, b), node.apply("gt", a, b))
            )
        case 7 | 14:
            unordered = node.apply("or", node.apply("isnan", a), node.apply("isnan", b))
            return unordered if predicate == 14 else node.apply("not", unordered)
        case _:
            always = node.apply("eq", a, a)
            never = node.apply("and", always, node.apply("not", always))
            return never if predicate == 0 else node.apply("not", never)


def _cast(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    """Convert by value; true becomes 1, or -1 by `arith.extsi` and `arith.sitofp`."""
    source, target = element_type_of(operands[0]), result_element(op.results[0])
    name = op_name(op)
    if name in ("arith.extui", "arith.uitofp") and source != i1:
        operands = [as_unsigned(node, operands[0])]
        if name == "arith.extui":
            return bits_as(node, node.cast(operands[0], unsigned_of(target)), target)
    if name in ("arith.extsi", "arith.sitofp") and source == i1:
        return node.apply("neg", node.cast(operands[0], target))
    return node.cast(operands[0], target)


def _to_unsigned(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    target = result_element(op.results[0])
    if target == i1:
        node.leave()
    return bits_as(node, node.cast(operands[0], unsigned_of(target)), target)


def _to_signed(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    if result_element(op.results[0]) == i1:
        node.leave()
    return _cast(node, op, operands)


def _truncate(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    """Keep the low bits; for i1, test the lowest one."""
    if result_element(op.results[0]) != i1:
        return _cast(node, op, operands)
    value = operands[0]
    return node.apply("ne", node.apply("and", value, node.scalar(1, value)), node.scalar(0, value))


def _same_index(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    if op_name(op) == "arith.index_castui":
        return _cast_unsigned_index(node, op, operands)
    if element_type_of(operands[0]) == i1 or result_element(op.results[0]) == i1:
        node.leave()
    return node.cast(operands[0], result_element(op.results[0]))


def _cast_unsigned_index(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    target = result_element(op.results[0])
    if i1 in (element_type_of(operands[0]), target):
        node.leave()
    return bits_as(node, node.cast(as_unsigned(node, operands[0]), unsigned_of(target)), target)


def _bitcast(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    return bits_as(node, operands[0], result_element(op.results[0]))


def _number_of(larger: str) -> Converter:
    """Return a converter to `larger`, `maximum` or `minimum`, that ignores a NaN operand."""

    def convert(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
        a, b = operands
        found = node.apply(larger, a, b)
        found = node.apply("select", node.apply("isnan", a), b, found)
        return node.apply("select", node.apply("isnan", b), a, found)

    return convert


def _is_finite(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    x = operands[0]
    return node.apply("not", node.apply("or", node.apply("isnan", x), node.apply("isinf", x)))


def _multiply_add(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    a, b, c = operands
    return node.apply("add", node.apply("mul", a, b), c)


_CONVERTERS: Mapping[str, Converter] = {
    "arith.bitcast": _bitcast,
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.extf": _cast,
    "arith.extsi": _cast,
    "arith.extui": _cast,
    "arith.fptosi": _to_signed,
    "arith.fptoui": _to_unsigned,
    "arith.index_cast": _same_index,
    "arith.index_castui": _same_index,
    "arith.maxnumf": _number_of("maximum"),
    "arith.minnumf": _number_of("minimum"),
    "arith.shli": _shift("shift_left"),
    "arith.shrsi": _shift("shift_right"),
    "arith.sitofp": _cast,
    "arith.truncf": _cast,
    "arith.trunci": _truncate,
    "arith.uitofp": _cast,
    "math.fma": _multiply_add,
    "math.isfinite": _is_finite,
}

SCALAR_OPS = frozenset({*SAME_OPS, *UNSIGNED, *_CONVERTERS, *SCALED})
"""The names of the scalar ops that have a counterpart in braid."""
