"""Elementwise ops, all from one table.

Operands have one rank; a dim of size 1 is repeated to fit the other operands (so `?` never
stands for a repeated dim). Signless integers are signed, `uiN` are unsigned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid import numpy_functions as fn
from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    element_type_of,
    extents_of,
    require,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.dtypes import bytes_of, f32, i1, is_float, is_stored_only, to_numpy
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply, Argument
from braid.dialects.braid.size_facts import take_as_equal
from braid.dialects.braid.structure import Access, OperandSource, Stage, Structure, parallel
from braid.support.sizes.expression import Extent, ExtentT
from braid.support.sizes.operators import is_equal, select


@dataclass(frozen=True)
class Elementwise:
    """One row of the table.

    `result` is `same` (the type of the last operand), `bool`, `float` (f32), or `any` (the result
    type is given: `cast`, `bitcast`). `flops` is the cost of one element on a scalar unit,
    relative to an add. `kinds` are those of element types that it takes: bool, integer, float.
    """

    name: str
    arity: int
    function: fn.Function
    summary: str
    result: str = "same"
    flops: int = 1
    kinds: str = "bif"


TABLE = (
    Elementwise("add", 2, np.add, "a + b", kinds="if"),
    Elementwise("sub", 2, np.subtract, "a - b", kinds="if"),
    Elementwise("mul", 2, np.multiply, "a * b"),
    Elementwise("div", 2, fn.divide, "a / b; integers round toward zero", flops=4, kinds="if"),
    Elementwise("rem", 2, fn.remainder, "remainder with the sign of the dividend a", flops=8),
    Elementwise("pow", 2, fn.power, "a to the power of b", flops=60, kinds="if"),
    Elementwise(
        "maximum", 2, fn.maximum, "the larger, of zeros the positive; NaN if either is NaN"
    ),
    Elementwise(
        "minimum", 2, fn.minimum, "the smaller, of zeros the negative; NaN if either is NaN"
    ),
    Elementwise("and", 2, np.bitwise_and, "bitwise and", kinds="bi"),
    Elementwise("or", 2, np.bitwise_or, "bitwise or", kinds="bi"),
    Elementwise("xor", 2, np.bitwise_xor, "bitwise exclusive or", kinds="bi"),
    Elementwise("shift_left", 2, np.left_shift, "a shifted left by b bits", kinds="i"),
    Elementwise(
        "shift_right", 2, np.right_shift, "a shifted right by b bits, keeping the sign", kinds="i"
    ),
    Elementwise("eq", 2, np.equal, "a == b", "bool"),
    Elementwise("ne", 2, np.not_equal, "a != b", "bool"),
    Elementwise("lt", 2, np.less, "a < b", "bool"),
    Elementwise("le", 2, np.less_equal, "a <= b", "bool"),
    Elementwise("gt", 2, np.greater, "a > b", "bool"),
    Elementwise("ge", 2, np.greater_equal, "a >= b", "bool"),
    Elementwise("select", 3, np.where, "b where the bool a is true, else c"),
    Elementwise("not", 1, np.invert, "bitwise not", kinds="bi"),
    Elementwise("neg", 1, np.negative, "-a", kinds="if"),
    Elementwise("abs", 1, np.abs, "|a|"),
    Elementwise("sign", 1, fn.sign, "-1, 0 or 1; a zero keeps its sign", kinds="if"),
    Elementwise("ceil", 1, np.ceil, "rounded up", kinds="f"),
    Elementwise("floor", 1, np.floor, "rounded down", kinds="f"),
    Elementwise("round", 1, np.rint, "rounded to nearest, halves to even", kinds="f"),
    Elementwise("sqrt", 1, np.sqrt, "square root", flops=6, kinds="f"),
    Elementwise("rsqrt", 1, fn.reciprocal_sqrt, "1 / square root", flops=8, kinds="f"),
    Elementwise("reciprocal", 1, np.reciprocal, "1 / a", flops=4, kinds="f"),
    Elementwise("exp", 1, np.exp, "e to the power of a", flops=12, kinds="f"),
    Elementwise("log", 1, np.log, "natural logarithm", flops=15, kinds="f"),
    Elementwise("erf", 1, fn.erf, "Gauss error function", flops=20, kinds="f"),
    Elementwise("tanh", 1, np.tanh, "hyperbolic tangent", flops=15, kinds="f"),
    Elementwise("sin", 1, np.sin, "sine", flops=15, kinds="f"),
    Elementwise("cos", 1, np.cos, "cosine", flops=15, kinds="f"),
    Elementwise("tan", 1, np.tan, "tangent", flops=25, kinds="f"),
    Elementwise("asin", 1, np.arcsin, "inverse sine", flops=25, kinds="f"),
    Elementwise("acos", 1, np.arccos, "inverse cosine", flops=25, kinds="f"),
    Elementwise("atan", 1, np.arctan, "inverse tangent", flops=25, kinds="f"),
    Elementwise("sinh", 1, np.sinh, "hyperbolic sine", flops=25, kinds="f"),
    Elementwise("cosh", 1, np.cosh, "hyperbolic cosine", flops=25, kinds="f"),
    Elementwise("asinh", 1, np.arcsinh, "inverse hyperbolic sine", flops=30, kinds="f"),
    Elementwise("acosh", 1, np.arccosh, "inverse hyperbolic cosine", flops=30, kinds="f"),
    Elementwise("atanh", 1, np.arctanh, "inverse hyperbolic tangent", flops=30, kinds="f"),
    Elementwise("isnan", 1, np.isnan, "whether a is NaN", "bool"),
    Elementwise("isinf", 1, np.isinf, "whether a is infinite", "bool"),
    Elementwise("cast", 1, fn.identity, "a in the element type of the result", "any"),
    Elementwise(
        "bitcast", 1, fn.identity, "the bits of a as the element type of the result", "any"
    ),
)


class ElementwiseOp(StructuredOp):
    """Base of the ops made from the table; `ROW` is the op's row."""

    ROW: ClassVar[Elementwise]

    inputs = var_operand_def(TensorType)
    output = result_def(TensorType)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the shape after repeating dims of size 1, with the element type of the table."""
        row = self.ROW
        count = len(self.inputs)
        require(count == row.arity, f"expected {row.arity} operands, got {count}")
        self._verify_element_types()
        shape = repeated_shape([extents_of(value) for value in self.inputs])
        element_type = element_type_of(self.inputs[-1])
        if row.result == "bool":
            element_type = i1
        elif row.result == "float":
            element_type = f32
        elif row.result == "any":
            element_type = element_type_of(self.results[0])
        return [tensor_type(element_type, shape)]

    def _verify_element_types(self) -> None:
        types = [element_type_of(value) for value in self.inputs]
        if self.ROW.name == "bitcast":
            given, wanted = types[0], element_type_of(self.results[0])
            message = "a bitcast of {} to {}, expected types of the same size"
            require(bytes_of(given) == bytes_of(wanted), message, given, wanted)
            return
        if self.ROW.result == "any":
            types.append(element_type_of(self.results[0]))
        for narrow in filter(is_stored_only, types):
            require(
                self.ROW.name == "select",
                "'{}' on element type {}, which is stored but not computed with; bitcast it to ui8",
                self.ROW.name,
                narrow,
            )
        types = types[: self.ROW.arity]
        if self.ROW.name == "select":
            require(types[0] == i1, "the condition has element type {}, expected i1", types[0])
            types = types[1:]
        for other in types[1:]:
            require(other == types[0], "operands have element types {} and {}", types[0], other)
        if _kind_of(types[0]) not in self.ROW.kinds:
            expected = " or ".join(_KINDS[kind] for kind in self.ROW.kinds)
            raise VerifyException(
                f"'{self.ROW.name}' on element type {types[0]}, expected {expected}; cast it"
            )

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of the row's numpy function, in the element type of the result."""
        dtype = to_numpy(self.result_type().element_type)
        if self.ROW.name == "bitcast":
            return (np.ascontiguousarray(operands[0]).view(dtype).reshape(operands[0].shape),)
        with np.errstate(all="ignore"):
            value = self.ROW.function(*operands)
            return (fn.convert(np.asarray(value), dtype),)

    def structure(self) -> Structure:
        """Return one stage over the result's dims; repeated dims are read at 0."""
        result = self.result_type()
        rank, shape = result.get_num_dims(), result.get_shape()
        reads = tuple(
            Access(OperandSource(i), repeated_map(shape_of(value), shape))
            for i, value in enumerate(self.inputs)
        )
        arguments = tuple(Argument(i) for i in range(len(reads)))
        body = Apply(self.ROW.name, arguments, result.element_type)
        identity = AffineMap.identity(rank)
        stage = Stage(parallel(rank), shape, reads, identity, shape, result.element_type, body)
        return Structure((stage,), (0,))


def repeated_shape(shapes: Sequence[Sequence[ExtentT]]) -> tuple[ExtentT, ...]:
    """Return the common shape of operands of one rank whose dims of size 1 are repeated.

    If two sizes differ, one of them must be 1, and the result has the other one.
    Raises VerifyException where the ranks differ or two extents do at all sizes.
    """
    for shape in shapes[1:]:
        require(
            len(shape) == len(shapes[0]),
            f"operands have ranks {len(shapes[0])} and {len(shape)}; reshape one of them",
        )
    result: list[Extent] = []
    for dim, extents in enumerate(zip(*shapes, strict=True)):
        known = {e for e in extents if isinstance(e, int) and e not in (1, DYNAMIC)}
        if len(known) > 1:
            raise VerifyException(f"dim {dim} has extents {sorted(known)} in different operands")
        take_as_equal(extents)
        result.append(known.pop() if known else _open_extent(extents))
    return cast("tuple[ExtentT, ...]", tuple(result))


def _open_extent(extents: Sequence[Extent]) -> Extent:
    """Return the extent to which ones and open extents are repeated."""
    if DYNAMIC in extents:
        return DYNAMIC
    result: Extent = 1
    for size in dict.fromkeys(extent for extent in extents if extent != 1):
        result = size if result == 1 else select(is_equal(result, 1), size, result)
    return result


def repeated_map(shape: Sequence[int], target: Sequence[int]) -> AffineMap:
    """Return the identity from `target`'s index, with 0 at the dims that `shape` repeats."""
    return AffineMap(
        len(target),
        0,
        tuple(
            AffineExpr.constant(0) if extent == 1 and wanted != 1 else AffineExpr.dimension(dim)
            for dim, (extent, wanted) in enumerate(zip(shape, target, strict=True))
        ),
    )


_KINDS = {"b": "i1", "i": "an integer type", "f": "a float type"}


def _kind_of(element_type: Attribute) -> str:
    if element_type == i1:
        return "b"
    return "f" if is_float(element_type) else "i"


def _example(row: Elementwise) -> str:
    """Return one line of IR with this op."""
    plain = "tensor<2x4xf32>" if "f" in row.kinds else "tensor<2x4xi32>"
    types = [plain] * row.arity
    if row.name == "select":
        types[0] = "tensor<2x1xi1>"
    result = {"same": plain, "bool": "tensor<2x4xi1>", "any": "tensor<2x4xi32>"}[row.result]
    operands = ", ".join(("%a", "%b", "%c")[: row.arity])
    return f"%y = braid.{row.name} {operands} : ({', '.join(types)}) -> {result}"


def _define(row: Elementwise) -> type[ElementwiseOp]:
    class_name = "".join(part.capitalize() for part in row.name.split("_")) + "Op"
    doc = f"""Elementwise: {row.summary}.

    Operands: {row.arity} of one rank, dims of size 1 are repeated.
    Fails verification for other ranks, extents or element types.

    ```mlir
    {_example(row)}
    ```
    """
    fields: dict[str, Any] = {
        "__doc__": doc,
        "__module__": __name__,
        "name": f"braid.{row.name}",
        "__annotations__": {"ROW": ClassVar[Elementwise]},
        "ROW": row,
    }
    return irdl_op_definition(cast(type[ElementwiseOp], type(class_name, (ElementwiseOp,), fields)))


ELEMENTWISE: dict[str, type[ElementwiseOp]] = {row.name: _define(row) for row in TABLE}
"""The op class of every row, by the row's name."""


def elementwise(name: str, *operands: Any, element_type: Attribute | None = None) -> ElementwiseOp:
    """Build `braid.<name>`; `element_type` is the result's, for casts alone."""
    if element_type is None:
        return ELEMENTWISE[name].on(*operands)
    type = tensor_type(element_type, extents_of(SSAValue.get(operands[0])))
    return ELEMENTWISE[name].declared(type, *operands)
