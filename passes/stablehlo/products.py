"""Products and convolutions of StableHLO, which name their dims."""

import re
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of, fits, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import i1, to_numpy
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.size_facts import may_equal
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


@converter("dot_general")
def dot_general(t: StablehloNode) -> SSAValue:
    """Convert a `dot_general`: the result has the batch dims, then the free ones of the left and of
    the right operand.
    """
    batch, contracted = (
        [t.dims("dot_dimension_numbers", f"{side}_{kind}_dimensions") for side in ("lhs", "rhs")]
        for kind in ("batching", "contracting")
    )
    return _product(t, [t.value(0), t.value(1)], batch, contracted)


def _product(
    t: StablehloNode,
    values: Sequence[SSAValue],
    batch: Sequence[Sequence[int]],
    contracted: Sequence[Sequence[int]],
) -> SSAValue:
    """Multiply two values that share these dims: see `dot_general`."""
    left, right = values
    free = [
        [dim for dim in range(len(shape_of(value))) if dim not in (*batch[i], *contracted[i])]
        for i, value in enumerate(values)
    ]
    for common in (batch, contracted):
        extents = [_extents(value, common[i]) for i, value in enumerate(values)]
        if not fits(*extents):
            t.fail(f"its common dims have extents {extents[0]} and {extents[1]}")
    a = _matrices(t, left, [batch[0], free[0], contracted[0]])
    b = _matrices(t, right, [batch[1], contracted[1], free[1]])
    y = t.emit(MatmulOp.on(a, b))
    if t.element_type == i1:
        y = t.apply("ne", y, t.scalar(0, y))
    return t.reshape(y, [*_extents(left, [*batch[0], *free[0]]), *_extents(right, free[1])])


@converter("dot")
def dot(t: StablehloNode) -> SSAValue:
    """Convert a dot, which contracts the last dim on the left with the first on the right."""
    left, right = (list(t.extents(t.value(index))) for index in (0, 1))
    if not left or not right or not may_equal(left[-1], right[0]):
        t.fail(f"operands have extents {left} and {right}")
    a = t.reshape(t.cast(t.value(0), t.element_type), [product_of(left[:-1]), left[-1]])
    b = t.reshape(t.cast(t.value(1), t.element_type), [right[0], product_of(right[1:])])
    if t.element_type == i1:
        t.unsupported("it is of bools", hint="write it as a dot_general")
    return t.reshape(t.emit(MatmulOp.on(a, b)), [*left[:-1], *right[1:]])


@converter("einsum", "unary_einsum")
def einsum(t: StablehloNode) -> SSAValue:
    """Sum what one operand has alone, multiply what both have, and put the dims in their order."""
    config = t.text("einsum_config")
    given, _, result = config.partition("->")
    labels, values = given.split(","), list(t.op.operands)
    ranks = [len(shape_of(value)) for value in values]
    if [*map(len, labels)] != ranks or any(len({*each}) != len(each) for each in (*labels, result)):
        t.unsupported(
            f"its config is '{config}', and its operands have ranks {ranks}",
            hint="name each dim by one letter, once in each operand and in the result",
        )
    for index, own in enumerate(labels):
        others = {*result}.union(*labels[:index], *labels[index + 1 :])
        lonely = [dim for dim, label in enumerate(own) if label not in others]
        values[index], labels[index] = _summed(t, values[index], own, lonely)
    (found, *others), product = labels, values[0]
    if others:
        both = [label for label in found if label in others[0]]
        batch = [label for label in both if label in result]
        contracted = [label for label in both if label not in result]
        batch_dims, contracted_dims = (
            [[own.index(label) for label in group] for own in labels]
            for group in (batch, contracted)
        )
        product = _product(t, values, batch_dims, contracted_dims)
        rest = [label for own in labels for label in own if label not in both]
        found = "".join([*batch, *rest])
    return t.transpose(product, [found.index(label) for label in result])


def _summed(
    t: StablehloNode, value: SSAValue, labels: str, dims: Sequence[int]
) -> tuple[SSAValue, str]:
    """Return a value with some dims summed, and the labels of the others."""
    if not dims:
        return value, labels
    kept = [dim for dim in range(len(labels)) if dim not in dims]
    summed = t.emit(ReduceOp.get(value, "add", dims))
    return t.reshape(summed, _extents(value, kept)), "".join(labels[dim] for dim in kept)


def _extents(value: SSAValue, dims: Sequence[int]) -> list[Extent]:
    return [extents_of(value)[dim] for dim in dims]


def _matrices(t: StablehloNode, value: SSAValue, groups: Sequence[Sequence[int]]) -> SSAValue:
    """Return an operand with one dim for each group of dims, in the type of the result.

    Bools are counted, since their sum is not an `or`.
    """
    value = t.cast(value, i32 if t.element_type == i1 else t.element_type)
    if any(len(group) > 1 for group in groups):
        t.extents(value)
    ordered = t.transpose(value, [dim for group in groups for dim in group])
    return t.reshape(ordered, [product_of(_extents(value, group)) for group in groups])


def _orders(t: StablehloNode) -> list[list[int]]:
    """Return the orders of dims of input, weight and result: batch, channels, spatial dims."""
    text = t.text("dimension_numbers")
    if text.startswith("raw "):
        return _raw_orders(t)
    match = re.fullmatch(r"\[(.*)\]x\[(.*)\]->\[(.*)\]", text)
    if match is None:
        t.fail(f"dimension_numbers is '{text}', expected '[b, 0, f]x[0, i, o]->[b, 0, f]'")
    parts = [[name.strip() for name in part.split(",")] for part in match.groups()]
    leading = (("b", "f"), ("o", "i"), ("b", "f"))
    return [
        [part.index(name) for name in (*first, *map(str, range(len(part) - 2)))]
        for part, first in zip(parts, leading, strict=True)
    ]


def _raw_orders(t: StablehloNode) -> list[list[int]]:
    """Return the orders of dims that are written one by one."""
    text = t.text("dimension_numbers")
    orders: list[list[int]] = []
    for of, leading in (
        ("input", ("batch", "feature")),
        ("kernel", ("output_feature", "input_feature")),
        ("output", ("batch", "feature")),
    ):
        first = [re.search(rf"\b{of}_{name}_dimension = (\d+)", text) for name in leading]
        spatial = t.dims("dimension_numbers", f"{of}_spatial_dimensions")
        order = [*(int(match[1]) for match in first if match), *spatial]
        if sorted(order) != list(range(len(spatial) + 2)):
            t.fail(f"dimension_numbers is '{text}', expected each dim of each operand once")
        orders.append(order)
    return orders


@converter("convolution")
def convolution(t: StablehloNode) -> SSAValue:
    """Convert a convolution with any order of dims; dilated inputs get zeros between their
    elements.
    """
    return _convolution(t, t.integers("padding", [0] * 2 * (len(shape_of(t.value(0))) - 2)))


@converter("dynamic_conv")
def dynamic_convolution(t: StablehloNode) -> SSAValue:
    """Convert a convolution whose padding is an operand."""
    return _convolution(t, t.size_values(2))


def _convolution(t: StablehloNode, pads: Sequence[Extent]) -> SSAValue:
    input, weight, result = _orders(t)
    x = t.transpose(t.cast(t.value(0), t.element_type), input)
    w = t.transpose(t.cast(t.value(1), t.element_type), weight)
    spatial = len(shape_of(x)) - 2
    if not spatial:
        t.unsupported("it has no spatial dims", hint="write it as a dot_general")
    groups = t.integer("feature_group_count")
    batches = t.integer("batch_group_count")
    if batches != 1:
        x, groups = _batches_as_features(t, x, batches), groups * batches
    ones = [1] * spatial
    reversal = t.integers("window_reversal", [0] * spatial)
    w = t.reverse(w, [2 + dim for dim, is_reversed in enumerate(reversal) if is_reversed])
    x = t.spread(x, [1, 1, *t.integers("lhs_dilation", ones)])
    x, low, high = t.padded(x, [0, 0, *pads[::2]], [0, 0, *pads[1::2]])
    if 0 in t.result_type.get_shape() and _is_empty(t, x, w, low, high):
        return t.constant(np.zeros(t.result_type.get_shape(), to_numpy(t.element_type)))
    y = t.emit(
        ConvOp.get(
            x,
            w,
            strides=t.integers("window_strides", ones),
            pad_low=low[2:],
            pad_high=high[2:],
            dilations=t.integers("rhs_dilation", ones),
            groups=groups,
        )
    )
    return t.transpose(y, [result.index(dim) for dim in range(len(result))])


def _batches_as_features(t: StablehloNode, x: SSAValue, groups: int) -> SSAValue:
    """Return an input whose groups of batches, each with filters of its own, are groups of its
    features.
    """
    batch, features, *spatial = t.extents(x)
    if groups < 1 or t.fixed(batch) % groups:
        t.fail(f"a batch of {batch} is in {groups} groups")
    parts = t.reshape(x, [groups, t.fixed(batch) // groups, features, *spatial])
    moved = t.transpose(parts, [1, 0, *range(2, len(spatial) + 3)])
    return t.reshape(moved, [t.fixed(batch) // groups, groups * features, *spatial])


def _is_empty(
    t: StablehloNode, x: SSAValue, w: SSAValue, low: Sequence[int], high: Sequence[int]
) -> bool:
    """Return whether a window is larger than its input, so that the result is empty."""
    shape, window = t.numbers(x)[2:], t.numbers(w)[2:]
    dilations = t.integers("rhs_dilation", [1] * len(window))
    fields = zip(shape, low[2:], high[2:], window, dilations, strict=True)
    return any(n + a + b < (k - 1) * d + 1 for n, a, b, k, d in fields)
