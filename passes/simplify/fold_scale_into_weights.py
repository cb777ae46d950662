"""`fold-scale-into-weights`: scales and shifts by weights cost nothing at run time.

A chain of additions and multiplications by known values, such as an inference-time batch
normalization, is one scale and one shift: `y = x · s + t`. Where x is a convolution or a matrix
product, the scale goes into its weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.names import union_names

_OpT = TypeVar("_OpT", bound=TensorOp)

_AFFINE = frozenset({"add", "sub", "mul", "div"})


@dataclass(frozen=True)
class _Link:
    """One op of a chain: `input` combined with the known value `known`."""

    op: ElementwiseOp
    input: SSAValue
    known: SSAValue


@dataclass
class _Emitter:
    """Inserts ops before `point`; the neutral scale and shift are None."""

    point: Operation

    def insert(self, op: _OpT) -> _OpT:
        Rewriter.insert_op(op, InsertPoint.before(self.point))
        return op

    def apply(self, name: str, *operands: SSAValue) -> SSAValue:
        return self.insert(elementwise(name, *operands)).output

    def combine(self, name: str, left: SSAValue | None, right: SSAValue) -> SSAValue:
        return right if left is None else self.apply(name, left, right)


def _link(op: Operation, expressions: ParameterExpressions) -> _Link | None:
    """`op` as a link of a chain: affine, on floats, known on one side, shape unchanged."""
    if not isinstance(op, ElementwiseOp) or op.ROW.name not in _AFFINE:
        return None
    left, right = op.operands
    if expressions.is_known(right):
        link = _Link(op, left, right)
    elif expressions.is_known(left) and op.ROW.name in ("add", "mul"):
        link = _Link(op, right, left)
    else:
        return None
    unchanged = link.input.type == op.output.type and not expressions.is_known(link.input)
    return link if unchanged and is_float(element_type_of(op.output)) else None


def _chain(last: _Link, expressions: ParameterExpressions) -> list[_Link]:
    """The links up to `last`, first one first; values between them have no other use."""
    links = [last]
    while True:
        owner = links[-1].input.owner
        if not isinstance(owner, Operation) or owner.parent is not last.op.parent:
            return links[::-1]
        link = _link(owner, expressions)
        one = link is not None and links[-1].input.has_one_use()
        if link is None or not one or not run_together(owner, last.op):
            return links[::-1]
        links.append(link)


def _scale_and_shift(
    links: Sequence[_Link], emit: _Emitter
) -> tuple[SSAValue | None, SSAValue | None]:
    """`s` and `t` such that the chain is `x · s + t`; None for 1 and 0."""
    scale: SSAValue | None = None
    shift: SSAValue | None = None
    for link in links:
        known = link.known
        match link.op.ROW.name:
            case "add":
                shift = emit.combine("add", shift, known)
            case "sub":
                shift = emit.combine("add", shift, emit.apply("neg", known))
            case name:
                factor = known if name == "mul" else emit.apply("reciprocal", known)
                scale = emit.combine("mul", scale, factor)
                shift = None if shift is None else emit.apply("mul", shift, factor)
    return scale, shift


def _scaled(root: SSAValue, scale: SSAValue, emit: _Emitter) -> SSAValue:
    """`root · scale`, in the weights of `root` where that is possible."""
    weights = _scaled_weights(root, scale, emit)
    if weights is None:
        return emit.apply("mul", root, scale)
    assert isinstance(root.owner, Operation)
    op = root.owner.clone()
    op.operands[1] = weights
    Rewriter.insert_op(op, InsertPoint.before(emit.point))
    return op.results[0]


def _foldable(root: SSAValue, block_of: Operation, expressions: ParameterExpressions) -> bool:
    """Whether `root` is a product with known weights whose only use is the chain."""
    op = root.owner
    return (
        isinstance(op, ConvOp | MatmulOp)
        and op.parent is block_of.parent
        and root.has_one_use()
        and run_together(op, block_of)
        and expressions.is_known(op.operands[1])
    )


def _scaled_weights(root: SSAValue, scale: SSAValue, emit: _Emitter) -> SSAValue | None:
    """The weights of `root` times `scale`, None if the scale is not one per output channel."""
    op, shape, output = root.owner, shape_of(scale), shape_of(root)
    channel = 1 if isinstance(op, ConvOp) else len(output) - 1
    if any(extent != 1 for dim, extent in enumerate(shape) if dim != channel):
        return None
    if isinstance(op, ConvOp):
        per_output = (shape[1], *(1,) * (len(shape) - 1))
        scale = emit.insert(ReshapeOp.get(scale, per_output)).output
    assert isinstance(op, ConvOp | MatmulOp)
    return emit.apply("mul", op.operands[1], scale)


def _fold(last: _Link, expressions: ParameterExpressions) -> None:
    links = _chain(last, expressions)
    root = links[0].input
    into_weights = _foldable(root, last.op, expressions)
    if len(links) == 1 and not (into_weights and last.op.ROW.name in ("mul", "div")):
        return
    emit = _Emitter(last.op)
    scale, shift = _scale_and_shift(links, emit)
    value = root
    if scale is not None:
        value = _scaled(root, scale, emit) if into_weights else emit.apply("mul", root, scale)
    if shift is not None:
        value = emit.apply("add", value, shift)
    assert isinstance(value.owner, Operation)
    union_names(value.owner, *(link.op for link in links))
    last.op.output.replace_all_uses_with(value)
    for link in reversed(links):
        Rewriter.erase_op(link.op)


@dataclass(frozen=True)
class FoldScaleIntoWeightsPass(ModulePass):
    """Makes chains of scales and shifts by known values one scale and one shift, or none.

    In: any module. Out: the same function; the scale after a convolution or a matrix product
    with known weights is part of the weights if it is one number per output channel or one for
    all. Rounding changes as it does with every such folding.

    ```mlir
    %y = braid.conv %x, %w …               // braid.conv %x, (%w · reshape %s)
    %z = braid.mul %y, %s                  // gone
    ```
    """

    name = "fold-scale-into-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold every chain in `op`."""
        expressions = ParameterExpressions()
        # Last op first, so that a chain is met at its end.
        for candidate in reversed(list(op.walk())):
            if candidate.parent is None:
                continue
            link = _link(candidate, expressions)
            if link is not None:
                _fold(link, expressions)
