"""Conversion of loop nests that read an operand in sliding windows: convolution, pooling."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.size_facts import may_be_at_most
from braid.dialects.braid.sized_ops import slice_of
from braid.passes.linalg.nests import Combination, Nest, Window, in_result_dims
from braid.passes.linalg.scalar_types import as_unsigned
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_POOLS = {"add": "add", "maximum": "max", "minimum": "max"}


def convert_windows(own: Nest) -> SSAValue:
    """Return the only result; raise NotConvertedError if it is no convolution and no pooling."""
    combine = own.combination()
    factors = own.factors(combine)
    if factors is not None:
        return own.with_start(_convolution(own, *factors), "add")
    source = own.source(combine.value)
    if source is None or combine.kind not in _POOLS:
        own.node.leave()
    return own.with_start(_pooling(own, combine, *source), combine.kind)


def _places(own: Nest, argument: BlockArgument) -> list[Window | int | None]:
    """Return a window or loop for each dim of an operand, None for extent 1 indexed by 0."""
    value, map = own.operand(argument)
    places: list[Window | int | None] = []
    for expr, extent in zip(map.results, own.node.shape(value), strict=True):
        match expr:
            case AffineDimExpr(position):
                places.append(position)
            case AffineConstantExpr(0) if extent == 1:
                places.append(None)
            case _:
                places.append(_window(own, expr))
    used = [place for place in places if isinstance(place, int)]
    for place in places:
        if isinstance(place, Window):
            used += [place.outer, place.inner]
    if len(set(used)) < len(used):
        own.node.leave()
    return places


def _window(own: Nest, expr: AffineExpr) -> Window:
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, left, right):
            terms = dict((_term(own, left), _term(own, right)))
        case _:
            own.node.leave()
    kept, reduced = own.result_dims, own.reduced
    outer = [dim for dim in terms if dim in kept]
    inner = [dim for dim in terms if dim in reduced]
    if len(outer) != 1 or len(inner) != 1:
        own.node.leave()
    return Window(outer[0], terms[outer[0]], inner[0], terms[inner[0]])


def _term(own: Nest, expr: AffineExpr) -> tuple[int, int]:
    match expr:
        case AffineDimExpr(position):
            return position, 1
        case AffineBinaryOpExpr(
            AffineBinaryOpKind.Mul, AffineDimExpr(position), AffineConstantExpr(factor)
        ) if factor > 0:
            return position, factor
        case _:
            own.node.leave()


def _image(
    own: Nest, value: SSAValue, places: Sequence[Window | int | None], leading: Sequence[int]
) -> SSAValue:
    """Return an operand with the dims of loops `leading` first, then those of its windows.

    Elements at the end of a dim that no window reaches are cut off.
    """
    shape = own.node.shape(value)
    sizes = [
        _reached(own, place) if isinstance(place, Window) else extent
        for place, extent in zip(places, shape, strict=True)
    ]
    if not all(map(may_be_at_most, sizes, shape)):
        own.node.leave()
    if tuple(sizes) != shape:
        value = own.node.emit(slice_of(value, [0] * len(shape), sizes))
    kept = [number for number, place in enumerate(places) if place is not None]
    value = own.node.reshape(value, [sizes[number] for number in kept])
    here = [places[number] for number in kept]
    windows = [number for number, place in enumerate(here) if isinstance(place, Window)]
    return own.node.transpose(value, [*(here.index(dim) for dim in leading), *windows])


def _reached(own: Nest, window: Window) -> Extent:
    """Return the extent of a dim that the window covers in all of its positions."""
    outer, inner = own.extents[window.outer], own.extents[window.inner]
    if 0 in (outer, inner):
        own.node.leave()
    return (outer - 1) * window.stride + (inner - 1) * window.dilation + 1


def _merged(own: Nest, value: SSAValue, groups: Sequence[Sequence[int]], rest: int) -> SSAValue:
    """Return `value` with each group of its leading dims merged; `rest` dims follow them."""
    count = sum(map(len, groups))
    shape = own.node.shape(value)
    assert len(shape) == count + rest
    merged = [product_of(own.extents[dim] for dim in group) for group in groups]
    return own.node.reshape(value, [*merged, *shape[count:]])


def _convolution(own: Nest, left: SSAValue, right: SSAValue) -> SSAValue:
    sources = [own.source(left), own.source(right)]
    found = [(s, _places(own, s[0])) for s in sources if s is not None]
    images = [each for each in found if any(isinstance(place, Window) for place in each[1])]
    if len(found) != 2 or len(images) != 1:
        own.node.leave()
    (image, places), (weight, weight_places) = sorted(found, key=lambda each: each is not images[0])
    windows = [place for place in places if isinstance(place, Window)]
    plain = [place for place in places if isinstance(place, int)]
    weights = [place for place in weight_places if isinstance(place, int)]
    kept = own.result_dims
    inner = [window.inner for window in windows]
    outer = [window.outer for window in windows]
    batch = [dim for dim in plain if dim in kept and dim not in weights]
    groups = [dim for dim in plain if dim in kept and dim in weights]
    channels = [dim for dim in plain if dim not in kept and dim in weights]
    features = [dim for dim in weights if dim in kept and dim not in plain]
    loops = [*batch, *groups, *channels, *features, *inner, *outer]
    if sorted(loops) != list(range(len(own.extents))) or not set(inner) <= set(weights):
        own.node.leave()
    x = _image(own, own.converted(*image), places, [*batch, *groups, *channels])
    x = _merged(own, x, [batch, [*groups, *channels]], len(windows))
    w = own.converted(*weight)
    w = own.node.reshape(w, [own.extents[dim] for dim in weights])
    order = [*groups, *features, *channels, *inner]
    w = own.node.transpose(w, [weights.index(dim) for dim in order])
    w = _merged(own, w, [[*groups, *features], channels], len(windows))
    zeros = [0] * len(windows)
    y = own.node.emit(
        ConvOp.get(
            x,
            w,
            strides=[window.stride for window in windows],
            pad_low=zeros,
            pad_high=zeros,
            dilations=[window.dilation for window in windows],
            groups=own.node.fixed(product_of(own.extents[dim] for dim in groups)),
        )
    )
    places = [[dim] for dim in outer]
    return in_result_dims(own, y, [batch, [*groups, *features], *places])


def _pooling(
    own: Nest, combine: Combination, argument: BlockArgument, casts: Sequence[Operation]
) -> SSAValue:
    kind = combine.kind
    value, _ = own.operand(argument)
    if not isinstance(value.type, TensorType):
        own.node.leave()
    places = _places(own, argument)
    windows = [place for place in places if isinstance(place, Window)]
    plain = [place for place in places if isinstance(place, int)]
    inner, outer = ([getattr(w, side) for w in windows] for side in ("inner", "outer"))
    if sorted([*plain, *inner, *outer]) != list(range(len(own.extents))):
        own.node.leave()
    if not set(plain) <= set(own.result_dims):
        own.node.leave()
    x = own.converted(argument, casts)
    if combine.is_unsigned:
        x = as_unsigned(own.node, x)
    x = _image(own, x, places, plain)
    x = _merged(own, x, [[], plain], len(windows))
    zeros = [0] * len(windows)
    pool = PoolOp.get(
        _mirrored(own, kind, x),
        _POOLS[kind],
        [own.node.fixed(own.extents[window.inner]) for window in windows],
        strides=[window.stride for window in windows],
        pad_low=zeros,
        pad_high=zeros,
        dilations=[window.dilation for window in windows],
    )
    y = _mirrored(own, kind, own.node.emit(pool))
    return in_result_dims(own, y, [plain, *([dim] for dim in outer)])


def _mirrored(own: Nest, kind: str, x: SSAValue) -> SSAValue:
    """Reverse the order of the elements for a minimum, which a maximum pooling computes."""
    if kind != "minimum":
        return x
    return own.node.apply("neg" if is_float(element_type_of(x)) else "not", x)
