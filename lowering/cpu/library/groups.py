"""Groups that are one primitive of oneDNN, with elementwise ops on the result as post-ops."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.analysis.nests.pointwise import pointwise, splat
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.cpu.library.primitives import BINARY
from braid.lowering.emit.math.points import has_code

Anchor = ConvOp | MatmulOp | PoolOp | SoftmaxOp | LayerNormOp

_FUNCTIONS = {"tanh", "exp", "sqrt", "abs"}
_LARGEST = math.inf


@dataclass(frozen=True)
class LibraryStep:
    """A post-op: a function of one number, or of one number and an operand of the group."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0
    operand: BlockArgument | None = None


@dataclass(frozen=True)
class LibraryGroup:
    """The op that the primitive computes, and the post-ops on its result."""

    anchor: Anchor
    steps: tuple[LibraryStep, ...]


def match_library(group: FusedOp, *, is_strict: bool = False) -> LibraryGroup | None:
    """Return the primitive that a group is; None where it is not one, or not of f32.

    If results `is_strict`ly are those of the ops, none whose functions are only close to them.
    """
    anchors = [op for op in group.body.block.ops if isinstance(op, Anchor)]
    if len(anchors) != 1 or len(group.outputs) != 1:
        return None
    (anchor,) = anchors
    operands = anchor.operands
    if not all(isinstance(v, BlockArgument) for v in operands) or len(set(operands)) < len(
        operands
    ):
        return None
    values = (*group.inputs, *group.outputs)
    if any(element_type_of(value) != Float32Type() for value in values) or not _suits(anchor):
        return None
    points = pointwise(group, anchor)
    if points is None or not has_code(points) or set(anchor.operands[1:]) & set(points.leaves):
        return None
    steps = _steps(anchor.results[0], points.ops, points.results[0], is_strict=is_strict)
    return None if steps is None else LibraryGroup(anchor, tuple(steps))


def _suits(anchor: Anchor) -> bool:
    """Return whether oneDNN has this form of the op."""
    if min((extent for value in anchor.operands for extent in shape_of(value)), default=0) < 1:
        return False
    rank = len(shape_of(anchor.operands[0]))
    match anchor:
        case ConvOp() | PoolOp():
            return rank == 4 and not anchor.windows.is_padded and anchor.accumulator is None
        case MatmulOp():
            return anchor.accumulator is None and len(shape_of(anchor.rhs)) == rank >= 2
        case SoftmaxOp():
            return True
        case LayerNormOp():
            row = (*[1] * (rank - 1), shape_of(anchor.input)[-1])
            has_rows = shape_of(anchor.scale) == shape_of(anchor.bias) == row
            return has_rows and tuple(anchor.dims) == (rank - 1,)


def _steps(
    value: SSAValue, ops: Sequence[Operation], result: SSAValue, *, is_strict: bool
) -> list[LibraryStep] | None:
    """Return the chain of steps from `value` to `result`; None if there is none."""
    steps: list[LibraryStep] = []
    rest = [op for op in ops if not isinstance(op, ConstantOp)]
    while rest:
        step = _step(rest[0], value) if value.has_one_use() else None
        if step is None:
            name = None if is_strict else _known_function(value, rest, result)
            return None if name is None else [*steps, LibraryStep(name, 1.0)]
        steps.append(step)
        value = rest.pop(0).results[0]
    return steps if value is result else None


def _step(op: Operation, value: SSAValue) -> LibraryStep | None:
    if not isinstance(op, ElementwiseOp) or shape_of(op.output) != shape_of(value):
        return None
    name = op.ROW.name
    if len(op.inputs) == 1:
        return LibraryStep(name) if name in _FUNCTIONS else _linear(name, None, False)
    if len(op.inputs) != 2:
        return None
    is_right = op.inputs[1] is value
    other = op.inputs[0] if is_right else op.inputs[1]
    number = splat(other.owner) if isinstance(other.owner, ConstantOp) else None
    if number is not None:
        return _linear(name, float(number), is_right)
    commutes = name in {"add", "mul", "maximum", "minimum"}
    if isinstance(other, BlockArgument) and name in BINARY and (commutes or not is_right):
        return LibraryStep(name, operand=other)
    return None


def _linear(name: str, number: float | None, is_right: bool) -> LibraryStep | None:
    """Return the step of an op with a number; `is_right` means that the operand is on the left."""
    match name, number, is_right:
        case "neg", None, _:
            return LibraryStep("linear", -1.0, 0.0)
        case "add", float(c), _:
            return LibraryStep("linear", 1.0, c)
        case "mul", float(c), _:
            return LibraryStep("linear", c, 0.0)
        case "sub", float(c), False:
            return LibraryStep("linear", 1.0, -c)
        case "sub", float(c), True:
            return LibraryStep("linear", -1.0, c)
        case "div", float(c), False if _has_exact_reciprocal(c):
            return LibraryStep("linear", 1 / c, 0.0)
        case "maximum", 0.0, _:
            return LibraryStep("relu")
        case "maximum", float(c), _:
            return LibraryStep("clip", c, _LARGEST)
        case "minimum", float(c), _:
            return LibraryStep("clip", -_LARGEST, c)
        case _:
            return None


def _has_exact_reciprocal(number: float) -> bool:
    """Return whether `number` is a power of two whose reciprocal is a normal number."""
    return abs(math.frexp(number)[0]) == 0.5 and 2.0**-126 <= abs(number) <= 2.0**126


def _known_function(value: SSAValue, ops: Sequence[Operation], result: SSAValue) -> str | None:
    """Return the name of the function that ops compute of `value`, found by samples.

    The library's is close to it, not the same.
    """
    rank = len(shape_of(value))
    points = np.linspace(-9, 9, 4001, dtype=np.float32).reshape((1,) * (rank - 1) + (-1,))
    known: dict[SSAValue, Array] = {value: points}
    for op in ops:
        if not isinstance(op, ElementwiseOp):
            return None
        for operand in op.operands:
            number = splat(operand.owner) if isinstance(operand.owner, ConstantOp) else None
            if number is not None:
                dtype = to_numpy(element_type_of(operand))
                known[operand] = np.full((1,) * rank, number, dtype)
            elif operand not in known:
                return None
        known[op.output] = op.evaluate(*(known[operand] for operand in op.operands))[0]
    if result not in known:
        return None
    x = points.astype(np.float64)
    for name, expected in _expected(x).items():
        if np.allclose(known[result], expected, rtol=1e-4, atol=1e-5):
            return name
    return None


def _expected(x: Array) -> dict[str, Array]:
    from math import erf

    logistic = 1 / (1 + np.exp(-x))
    return {
        "sigmoid": logistic,
        "swish": x * logistic,
        "gelu": x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    }
