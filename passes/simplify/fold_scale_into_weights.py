"""`fold-scale-into-weights`: known scales and shifts of a matmul or convolution in its weights.

Addends of a convolution or a matmul, before and after scales by known values, such as a bias and an
inference-time batch normalization, become one shift: `y = x · s + t`. The scale goes into the
weights. Values decide whether that is right for every input: see `folded_arithmetic`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.interpreter.parameter_values import Array, ParameterValues, parameter_values
from braid.analysis.structure.conversions import narrow_source
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.names import union_names
from braid.dialects.braid.settings import settings_of
from braid.passes.simplify.folded_arithmetic import applied, can_add_first, can_scale_weights

_OpT = TypeVar("_OpT", bound=TensorOp)

_SHIFTS, _SCALES = frozenset({"add", "sub"}), frozenset({"mul", "div"})


@dataclass(frozen=True)
class _Link:
    """One op of a chain: `input` combined with the known value `known`."""

    op: ElementwiseOp
    input: SSAValue
    known: SSAValue

    @property
    def is_scale(self) -> bool:
        """Return whether the op scales; otherwise it shifts."""
        return self.op.ROW.name in _SCALES


@dataclass
class _Emitter:
    """A builder that inserts ops before `point`."""

    point: Operation

    def insert(self, op: _OpT) -> _OpT:
        Rewriter.insert_op(op, InsertPoint.before(self.point))
        return op

    def apply(self, name: str, *operands: SSAValue) -> SSAValue:
        return self.insert(elementwise(name, *operands)).output


@dataclass(frozen=True)
class _Known:
    """The values that are known at compile time, evaluated on demand."""

    expressions: ParameterExpressions
    values: ParameterValues


def _link(op: Operation, expressions: ParameterExpressions) -> _Link | None:
    """Return `op` as a link of a chain: affine, on floats, known on one side, shape unchanged."""
    if not isinstance(op, ElementwiseOp) or op.ROW.name not in _SHIFTS | _SCALES:
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
    """Return the links up to `last`, the first one first; values between them have no other use."""
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


def _product_of(root: SSAValue, last: Operation, known: _Known) -> ConvOp | MatmulOp | None:
    """Return the product by known weights that `root` is, if only the chain reads it."""
    op = root.owner
    if not isinstance(op, ConvOp | MatmulOp) or op.parent is not last.parent:
        return None
    if not root.has_one_use() or not run_together(op, last):
        return None
    weights = op.operands[1]
    if isinstance(op, MatmulOp) and narrow_source(cast(Operation, weights.owner)) is not None:
        return None  # They stay in 8 or 16 bits: see `sink-conversions`.
    return op if known.expressions.is_known(weights) else None


def _until_second_scale(links: Sequence[_Link]) -> Sequence[_Link]:
    """Return the links before the second scale: the first may give infinity or 0, which stays."""
    scales = [index for index, link in enumerate(links) if link.is_scale]
    return links[: scales[1]] if len(scales) > 1 else links


def _foldable(
    product: ConvOp | MatmulOp, links: Sequence[_Link], values: ParameterValues
) -> Sequence[_Link]:
    """Return the leading `links` that become a scale of the weights and one shift, maybe none.

    All links, only the leading shifts, or the scale alone if that comes first.
    """
    known = [values.of(link.known) for link in links]
    place = next((index for index, link in enumerate(links) if link.is_scale), len(links))
    leading = 1
    if place < len(links) and not _can_scale(product, links[place], known[place], values):
        links, known, leading = links[:place], known[:place], place
    scale = links[place] if place < len(links) else None
    shifts: list[Array] = []
    for index, (link, value) in enumerate(zip(links, known, strict=True)):
        if value is None:
            return []
        if link is not scale:
            signed = -value if link.op.ROW.name == "sub" else value
            factor = known[place] if scale is not None and index < place else None
            name = "mul" if scale is None else scale.op.ROW.name
            shifts.append(signed if factor is None else applied(name, signed, factor))
    if can_add_first(shifts):
        return links
    return links[:leading] if scale is not None and place == 0 else []


def _can_scale(
    product: ConvOp | MatmulOp, link: _Link, factor: Array | None, values: ParameterValues
) -> bool:
    """Return whether the scale is per output channel, or one for all, and exact in the weights."""
    shape, rank = shape_of(link.known), len(shape_of(product.results[0]))
    channel = 1 if isinstance(product, ConvOp) else rank - 1
    if factor is None or any(extent != 1 for dim, extent in enumerate(shape) if dim != channel):
        return False
    weights = values.of(product.operands[1])
    if weights is None:
        return False
    if isinstance(product, ConvOp):
        factor = factor.reshape(shape[1], *(1,) * (rank - 1))
    summed = tuple(range(1, rank)) if isinstance(product, ConvOp) else (rank - 2,)
    return can_scale_weights(link.op.ROW.name, weights, factor, summed)


def _fold(last: _Link, known: _Known) -> None:
    links = _chain(last, known.expressions)
    product = _product_of(links[0].input, last.op, known)
    if product is None:
        return
    folded = _foldable(product, _until_second_scale(links), known.values)
    if not folded or (len(folded) == 1 and not folded[0].is_scale):
        return
    # The scale or shift of the last link may be computed after the first one.
    emit, value = _Emitter(folded[-1].op), links[0].input
    scale = next((link for link in folded if link.is_scale), None)
    if scale is not None:
        value = _by_scaled_weights(product, scale, emit)
    if (shift := _shift(folded, emit)) is not None:
        value = emit.apply("add", value, shift)
    assert isinstance(value.owner, Operation)
    union_names(value.owner, *(link.op for link in folded))
    folded[-1].op.output.replace_all_uses_with(value)
    for link in reversed(folded):
        Rewriter.erase_op(link.op)


def _by_scaled_weights(product: ConvOp | MatmulOp, scale: _Link, emit: _Emitter) -> SSAValue:
    """Emit the product by its weights times the scale."""
    factor, shape = scale.known, shape_of(scale.known)
    if isinstance(product, ConvOp):
        per_output = (shape[1], *(1,) * (len(shape) - 1))
        factor = emit.insert(ReshapeOp.get(factor, per_output)).output
    weights = emit.apply(scale.op.ROW.name, product.operands[1], factor)
    op = product.clone()
    op.operands[1] = weights
    return emit.insert(op).results[0]


def _shift(links: Sequence[_Link], emit: _Emitter) -> SSAValue | None:
    """Emit the sum of all shifts, those before the scale multiplied by it; None without any."""
    shift: SSAValue | None = None
    for link in links:
        if link.is_scale:
            shift = None if shift is None else emit.apply(link.op.ROW.name, shift, link.known)
        elif shift is None:
            is_negative = link.op.ROW.name == "sub"
            shift = emit.apply("neg", link.known) if is_negative else link.known
        else:
            shift = emit.apply(link.op.ROW.name, shift, link.known)
    return shift


@dataclass(frozen=True)
class FoldScaleIntoWeightsPass(ModulePass):
    """Folds scales and shifts of a product with known weights into the weights and one shift.

    In: any module. Out: the same function, except for the rounding of products: the scale after a
    convolution or a matrix product with known weights is part of the weights if it is one number
    per output channel or one for all, and addends are added up first. Only one scale is
    folded, only where the values of parameters are known (see `ModelContext`) and are such that
    this is right for all inputs, and nothing with strict numerics. Elementwise ops on other values
    than products do not change.

    ```mlir
    %y = braid.conv %x, %w …               // braid.conv %x, (%w · reshape %s)
    %z = braid.mul %y, %s                  // gone
    ```
    """

    name = "fold-scale-into-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold every chain in `op`."""
        if settings_of(op).is_strict:
            return
        known = _Known(ParameterExpressions(), parameter_values(ctx, op))
        # Last op first, so that a chain is met at its end.
        for candidate in reversed(list(op.walk())):
            if candidate.parent is None:
                continue
            link = _link(candidate, known.expressions)
            if link is not None:
                _fold(link, known)
