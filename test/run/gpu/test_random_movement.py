"""Movements of elements on GPUs: random concatenations, slices, gathers, resizes and pools."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, f64, i8, i32, i64

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group

Rng = np.random.Generator

FLOATS = (f32, bf16, f16, f64)
TYPES = (*FLOATS, i8, i64)
LAYOUTS = ("abcd", "acdb", "aBcd8b")
EXTENTS = (1, 2, 3, 4, 7, 8, 16, 24, 33)


@dataclass(frozen=True)
class Random:
    """A group, with those of its inputs that are not just any numbers."""

    group: FusedOp
    inputs: Mapping[int, Array] = field(default_factory=dict[int, Array])


def extents(rng: Rng, rank: int) -> list[int]:
    return [int(n) for n in rng.choice(EXTENTS[: 9 if rank < 4 else 7], rank)]


def one_of(rng: Rng, choices: Sequence[Any]) -> Any:
    return choices[rng.integers(len(choices))]


def joined(rng: Rng) -> Random:
    """Two to four tensors of any layouts, behind each other in any dim."""
    element, dim = one_of(rng, TYPES), int(rng.integers(4))
    shape = extents(rng, 4)
    types = [
        with_layout(
            TensorType(element, [*shape[:dim], int(rng.choice(EXTENTS)), *shape[dim + 1 :]]),
            Layout.parse(one_of(rng, LAYOUTS)),
        )
        for _ in range(rng.integers(2, 5))
    ]

    def build(*x: Any) -> Any:
        op = ConcatOp.get(x, dim)
        return [op, elementwise("abs", op)] if rng.integers(2) else [op]

    return Random(make_group(types, build, (one_of(rng, LAYOUTS),)))


def cut(rng: Rng) -> Random:
    """Every so many elements of a part, with a frame around."""
    shape, rank = extents(rng, 3), 3
    offsets = [int(rng.integers(n)) for n in shape]
    steps = [int(n) for n in rng.integers(1, 3, rank)]
    sizes = [
        int(rng.integers(1, (n - o - 1) // s + 2))
        for n, o, s in zip(shape, offsets, steps, strict=True)
    ]
    low, high = ([int(n) for n in rng.integers(0, 5, rank)] for _ in range(2))
    element = one_of(rng, TYPES)
    number = -2 if element in (i8, i64) else -1.5

    def build(x: Any) -> Any:
        part = SliceOp.get(x, offsets, sizes, steps)
        return [part, PadOp.get(part, low, high, number)] if rng.integers(2) else [part]

    return Random(make_group([TensorType(element, shape)], build, ()))


def gathered(rng: Rng) -> Random:
    """By indices of either type in any dim, rows by tuples, or single elements."""
    shape, element, index = extents(rng, 3), one_of(rng, TYPES), one_of(rng, (i32, i64))
    kind, dim = int(rng.integers(3)), int(rng.integers(3))
    if kind == 0:
        own, bounds = extents(rng, int(rng.integers(1, 3))), [shape[dim]]
    elif kind == 1:
        depth = int(rng.integers(1, 4))
        own, bounds = [*extents(rng, 1), depth], shape[:depth]
    else:
        own = [
            int(rng.choice(EXTENTS)) if n == dim else int(rng.integers(1, extent + 1))
            for n, extent in enumerate(shape)
        ]
        bounds = [shape[dim]]
    dtype = np.int32 if index == i32 else np.int64
    numbers = rng.integers(0, bounds[0], own) if kind != 1 else rng.integers(0, bounds, own)

    def build(x: Any, i: Any) -> Any:
        op = (
            GatherNdOp.get(x, i)
            if kind == 1
            else (GatherOp, GatherElementsOp)[kind // 2].get(x, i, dim)
        )
        return [op, elementwise("abs", op)] if rng.integers(2) else [op]

    types = [TensorType(element, shape), TensorType(index, own)]
    return Random(make_group(types, build, ()), {1: numbers.astype(dtype)})


def resized(rng: Rng) -> Random:
    """Images of any layout, larger and smaller, to nearest elements or between them."""
    count, channels, *points = extents(rng, 4)
    layout = one_of(rng, LAYOUTS)
    sizes = [count, channels, *(int(n) for n in rng.integers(1, 20, 2))]
    how = Resampling(
        mode=one_of(rng, ("nearest", "linear", "cubic")),
        coordinates=one_of(rng, ("half_pixel", "asymmetric", "pytorch_half_pixel")),
        nearest_mode=one_of(rng, ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")),
    )
    shape = (count, channels, *points)
    scales = [new / old for new, old in zip(sizes, shape, strict=True)]
    type = with_layout(TensorType(one_of(rng, FLOATS[:3]), shape), Layout.parse(layout))
    return Random(make_group([type], lambda x: [ResizeOp.get(x, sizes, scales, how)], (layout,)))


def enlarged(rng: Rng) -> Random:
    """Images of any layout whose points become so many, by a resize or by known places; more."""
    count, channels, *points = extents(rng, 4)
    layout, element = one_of(rng, LAYOUTS), one_of(rng, FLOATS)
    shape, factors = (count, channels, *points), [int(n) for n in rng.choice([1, 2, 3, 4, 8], 2)]
    sizes = [count, channels, *(n * f for n, f in zip(points, factors, strict=True))]
    how = Resampling(mode="nearest", coordinates="asymmetric", nearest_mode="floor")
    scaled = [n if rng.integers(2) else 1 for n in sizes]

    def build(x: Any, y: Any) -> Any:
        ops: list[Any] = [ResizeOp.get(x, sizes, [1.0, 1.0, *map(float, factors)], how)]
        if rng.integers(2):
            places = [np.arange(size) // f for size, f in zip(sizes[2:], factors, strict=True)]
            rows, columns = map(ConstantOp.of, places)
            ops = [rows, GatherOp.get(x, rows, 2)]
            ops += [columns, GatherOp.get(ops[-1], columns, 3)]
        if rng.integers(2):
            ops.append(elementwise("mul", ops[-1], y))
        if rng.integers(2):
            every = ConstantOp.of(np.arange(int(rng.integers(2)), channels, 2) % channels)
            ops += [every, GatherOp.get(ops[-1], every, 1)] if channels > 1 else []
        return ops

    types = [TensorType(element, own) for own in (shape, scaled)]
    types[0] = with_layout(types[0], Layout.parse(layout))
    return Random(make_group(types, build, (layout,)))


def pooled(rng: Rng) -> Random:
    """Windows with any stride, dilation and padding, over images of any layout."""
    count, channels, *points = extents(rng, 4)
    layout, element = one_of(rng, LAYOUTS), one_of(rng, FLOATS[:3])
    window, stride, dilation = ([int(n) for n in rng.integers(1, m, 2)] for m in (4, 4, 3))
    low, high = ([int(rng.integers(0, w)) for w in window] for _ in range(2))
    spans = [d * (w - 1) + 1 for w, d in zip(window, dilation, strict=True)]
    grown = [max(n, s) for n, s in zip(points, spans, strict=True)]
    type = with_layout(TensorType(element, (count, channels, *grown)), Layout.parse(layout))

    def build(x: Any) -> Any:
        op = PoolOp.get(
            x,
            one_of(rng, ("max", "add")),
            window,
            strides=stride,
            pad_low=low,
            pad_high=high,
            dilations=dilation,
        )
        return [op, elementwise("neg", op)] if rng.integers(2) else [op]

    return Random(make_group([type], build, (layout,)))


KINDS: Mapping[str, Callable[[Rng], Random]] = {
    own.__name__: own for own in (joined, cut, gathered, resized, enlarged, pooled)
}


def check_random(kind: str, seed: int) -> None:
    made = KINDS[kind](np.random.default_rng(seed))
    check_group(made.group, emit_fallback, made.inputs, seed, unaligned=seed % 5 == 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_random_groups(kind: str, seed: int) -> None:
    check_random(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_random_groups(kind: str, seed: int) -> None:
    check_random(kind, seed)
