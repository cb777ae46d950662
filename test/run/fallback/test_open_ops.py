"""Ops and groups with open dims, by the fallback, against the semantics of the ops."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, TensorType, f32, i64

from braid.dialects.braid import Braid
from braid.dialects.braid.base import TensorOp, extents_of, tensor_type
from braid.dialects.braid.box_selection import NonMaxSuppressionOp
from braid.dialects.braid.constants import ConstantOp, IotaOp, ParameterOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import BroadcastOp, ConcatOp, ReshapeOp, TransposeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.placement import CopyOp, ReorderOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.resampling import COORDINATES, Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sized_ops import SizeValuesOp, pad_of, slice_of, top_k_of
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import symbol
from test.op_samples import DECOMPOSED, STRUCTURED, floats, integers
from test.run.fallback.conftest import make_group
from test.run.fallback.open_ops import check_sizes, opened, ops_of


def size_of(value: Any, dim: int = 0) -> Any:
    return extents_of(value)[dim]


def scaled(scales: Sequence[int | float], *options: Any) -> Callable[[Any], TensorOp]:
    """Build a resize by a scale of each dim; scales that are no integers are halves."""

    def build(x: Any) -> TensorOp:
        sizes = [
            n * scale if isinstance(scale, int) else n * int(2 * scale) // 2
            for n, scale in zip(extents_of(x), scales, strict=True)
        ]
        return ResizeOp.get(x, sizes, list(map(float, scales)), Resampling(*options))

    return build


OTHERS: list[tuple[str, Any, list[Any]]] = [
    (
        "reshape",
        lambda x: ReshapeOp.get(x, [size_of(x) * size_of(x, 1), 4]),
        [floats(3, 5, 4)],
    ),
    (
        "reshape apart",
        lambda x: ReshapeOp.get(x, [size_of(x, 1), 2, size_of(x) // 2, 4]),
        [floats(6, 5, 4)],
    ),
    ("copy", lambda x: CopyOp.declared(x.type, x, memory=StringAttr("host")), [floats(3, 5)]),
    ("reorder", lambda x: ReorderOp.to(x, Layout.parse("acdB8b")), [floats(2, 12, 3, 5)]),
    ("reorder bools", lambda x: ReorderOp.to(x, Layout.parse("ba")), [floats(3, 5) > 0]),
    ("concat", lambda *x: ConcatOp.get(x, 1), [floats(3, 5), floats(3, 2), floats(3, 5)]),
    ("concat first", lambda *x: ConcatOp.get(x, 0), [floats(3, 5), floats(2, 5)]),
    (
        "scatter_elements",
        lambda *x: ScatterElementsOp.get(*x, 0, "add"),
        [floats(6, 5), integers(3, 5, low=-6, high=6), floats(3, 5)],
    ),
    (
        "scatter_nd",
        lambda *x: ScatterNdOp.get(*x, "maximum"),
        [floats(6, 5, 4), integers(3, 2, low=-5, high=5), floats(3, 4)],
    ),
    ("top_k", lambda x: TopKOp.get(x, 1, 1), [floats(3, 6)]),
    ("top_k 3", lambda x: TopKOp.get(x, 3, 0, largest=False), [integers(5, 3)]),
    (
        "sized_top_k",
        lambda x: top_k_of(x, (size_of(x) + 1) // 2, 0),
        [floats(5, 3)],
    ),
    (
        "size_values",
        lambda x: SizeValuesOp.of([size_of(x), 4, size_of(x, 1) * 2], [3]),
        [floats(3, 5)],
    ),
    (
        "sized_slice",
        lambda x: slice_of(x, [size_of(x) - 1, 0], [size_of(x), size_of(x, 1)], [-1, 1]),
        [floats(3, 5)],
    ),
    (
        "sized_pad",
        lambda x: pad_of(x, [size_of(x, 1), 0], [1, size_of(x)], -1.5),
        [floats(3, 5)],
    ),
    ("iota", lambda x: IotaOp.of(1, tensor_type(i64, extents_of(x))), [floats(3, 5)]),
    (
        "broadcast",
        lambda x, y: BroadcastOp.get(x, [size_of(y), size_of(x, 1)]),
        [floats(1, 5), floats(3)],
    ),
    ("resize nearest", scaled([1, 2, 1.5], "nearest", "asymmetric"), [floats(2, 3, 5)]),
    ("resize linear", scaled([1, 2, 1.5], "linear"), [floats(2, 3, 5)]),
    ("resize integers", scaled([2, 1.5], "linear"), [integers(3, 6, high=90, dtype=np.int32)]),
    (
        "resize cubic",
        scaled([3, 2], "cubic", "align_corners", "floor", -0.5, True),
        [floats(3, 5)],
    ),
    (
        "resize antialias",
        scaled([0.5, 2], "linear", "half_pixel", "floor", -0.5, False, True),
        [floats(8, 5)],
    ),
    *[(f"resize {name}", scaled([2, 1.5], "linear", name), [floats(3, 6)]) for name in COORDINATES],
]


SAMPLES = [*STRUCTURED, *DECOMPOSED, *OTHERS]


def require_checked(build: Any, operands: Sequence[Any]) -> None:
    """Check an op with each of its dims open in turn, with all dims of equal extent open, and with
    all."""
    counts = [check_sizes(build, operands, shapes) for shapes in opened(operands)]
    # Ops that declare the shape of their result have none for other sizes: see `OTHERS`.
    assert sum(counts) or not operands or "resize" in str(build.__qualname__)


def samples(every: int) -> pytest.MarkDecorator:
    """Return a mark that gives a test every so many of the samples of ops."""
    chosen = [pytest.param(build, operands, id=name) for name, build, operands in SAMPLES[::every]]
    return pytest.mark.parametrize(("build", "operands"), chosen)


@pytest.mark.slow
@samples(1)
def test_op_with_each_dim_open(build: Any, operands: list[Any]) -> None:
    require_checked(build, operands)


@samples(3)
def test_op_with_all_dims_open(build: Any, operands: list[Any]) -> None:
    for shapes in list(opened(operands, each=False))[-1:]:
        check_sizes(build, operands, shapes)


def test_every_op_is_sampled() -> None:
    """Check that the samples have all ops that generic code computes."""
    shapes = [
        (build, operands, shapes) for _, build, operands in OTHERS for shapes in opened(operands)
    ]
    shapes += [(build, operands, [x.shape for x in operands]) for _, build, operands in SAMPLES]
    types = {type(op) for sample in shapes for op in ops_of(*sample)}
    known = {op for op in Braid.operations if issubclass(op, TensorOp)}
    assert known - types == {ConstantOp, ParameterOp, OpaqueOp, NonMaxSuppressionOp}


SCALE, OFFSET = floats(1, 1, 8), floats(1, 3, 1)


def normalized(x: Any, y: Any) -> list[TensorOp]:
    scale = ConstantOp.of(SCALE)
    norm = LayerNormOp.get(x, scale, scale, first_dim=2, epsilon=1e-5)
    return [scale, norm, product := MatmulOp.on(norm, y), elementwise("exp", product)]


def attention(x: Any, y: Any) -> list[TensorOp]:
    turned = TransposeOp.get(y, (0, 2, 1))
    scores = MatmulOp.on(x, turned)
    shares = SoftmaxOp.get(scores, 2)
    return [turned, scores, shares, MatmulOp.on(shares, y)]


def chain(x: Any, y: Any) -> list[TensorOp]:
    """Build a long chain of elementwise ops, which become nested."""
    ops: list[TensorOp] = [elementwise("mul", x, y)]
    for _ in range(20):
        ops.append(elementwise("sub", elementwise_of(ops, "tanh"), ops[-1]))
    return [*ops, ReduceOp.get(ops[-1], "add", [1])]


def elementwise_of(ops: list[TensorOp], name: str) -> TensorOp:
    ops.append(elementwise(name, ops[-1]))
    return ops[-1]


def embedded(x: Any, y: Any) -> list[TensorOp]:
    """Build a gather at known positions, with others added that are known."""
    places, offset = ConstantOp.of(np.array([1, 0, -1])), ConstantOp.of(OFFSET)
    gather = GatherOp.get(x, places, 1)
    return [
        places,
        offset,
        gather,
        add := elementwise("add", gather, offset),
        ReshapeOp.get(add, [size_of(x) * 3, size_of(x, 2)]),
    ]


GROUPS = {
    "normalized": (normalized, [floats(2, 3, 8), floats(1, 8, 5)]),
    "attention": (attention, [floats(2, 3, 8), floats(2, 5, 8)]),
    "chain": (chain, [floats(3, 5, 2), floats(3, 1, 2)]),
    "chain of halves": (chain, [floats(3, 5, dtype=np.float16), floats(1, 5, dtype=np.float16)]),
    "embedded": (embedded, [floats(3, 5, 4), floats(1)]),
}


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("name", GROUPS)
def test_group_with_open_dims(name: str, every: bool) -> None:
    """Check groups whose results are those of the last op, or of all."""
    build, operands = GROUPS[name]
    *_, shapes = opened(operands, each=False)
    assert check_sizes(build, operands, shapes, every=every)


@pytest.mark.parametrize("layout", ["acdb", "aBcd8b", "ABcd2a4b"])
def test_open_dims_in_layouts(layout: str) -> None:
    """Check that tails of blocks are zeros, also where the blocked dim is open.

    Results are written in the order of their layout, whichever dim is joined.
    """
    N = symbol("n3")
    shapes = [[2, N, N, 5]]
    for build in (
        lambda x: [s := elementwise("exp", x), ConcatOp.get([x, s], 1)],
        lambda x: [s := elementwise("exp", x), ConcatOp.get([x, s, x], 3)],
        lambda x: [s := elementwise("exp", x), ConcatOp.get([s, x], 0)],
        lambda x: [s := elementwise("exp", x), TransposeOp.get(s, (0, 3, 1, 2))],
        scaled([1, 2, 1.5, 1], "nearest", "asymmetric"),
    ):
        assert check_sizes(build, [floats(2, 3, 3, 5)], shapes, layouts=[layout]) > 1


@pytest.mark.parametrize(("shape", "dims"), [((1, 3000000), [1]), ((1500000, 2), [0])])
def test_sums_of_many_numbers_are_exact(shape: tuple[int, int], dims: list[int]) -> None:
    """Check a sum that would be wrong by percents if all numbers were added one by one."""
    tenths = np.full(shape, 0.1, np.float32)
    shapes = [[symbol(f"n{n}") if n > 2 else n for n in shape]]
    assert check_sizes(lambda x: [ReduceOp.get(x, "add", dims)], [tenths], shapes, sizes=(0,))


def test_extents_without_names_are_refused() -> None:
    group = make_group([TensorType(f32, [DYNAMIC, 3])], lambda x: [elementwise("exp", x)], ())
    op = group.body.block.first_op
    assert op is not None
    op.location = FileLineColLoc(StringAttr("model.onnx"), IntAttr(3), IntAttr(1))
    with pytest.raises(UnsupportedError, match="have no names") as caught:
        emit_fallback(group, "tested")
    assert str(caught.value.location) == "model.onnx:3:1"
    assert caught.value.hint == "give the shape"


def random_build(random: Random) -> Any:
    """Build a chain of ops that have a meaning on any tensor of rank 4."""
    steps = [random.choice(list(STEPS)) for _ in range(random.randint(1, 5))]
    numbers = [(random.randrange(3), random.randrange(4), random.random()) for _ in steps]

    def build(x: Any) -> list[TensorOp]:
        ops: list[TensorOp] = []
        for step, drawn in zip(steps, numbers, strict=True):
            ops += STEPS[step](x, *drawn)
            x = ops[-1].results[0]
        return ops

    return build


def merged(x: Any, dim: int, _other: int, _share: float) -> list[TensorOp]:
    extents = extents_of(x)
    return [
        ReshapeOp.get(x, [*extents[:dim], extents[dim] * extents[dim + 1], *extents[dim + 2 :], 1])
    ]


def centered(x: Any, dim: int, other: int, _share: float) -> list[TensorOp]:
    reduced = ReduceOp.get(x, "maximum", sorted({dim, other}))
    return [reduced, elementwise("sub", x, reduced)]


def joined(x: Any, dim: int, other: int, _share: float) -> list[TensorOp]:
    negated = elementwise("neg", x)
    return [negated, ConcatOp.get([x, negated, x], other)]


def turned(x: Any, dim: int, other: int, _share: float) -> list[TensorOp]:
    dims = [*range(4)]
    dims[dim], dims[other] = dims[other], dims[dim]
    return [TransposeOp.get(x, dims)]


def padded(x: Any, dim: int, other: int, share: float) -> list[TensorOp]:
    low, high = [0] * 4, [0] * 4
    low[dim], high[other] = 2, size_of(x, dim)
    return [pad_of(x, low, high, share)]


def cut(x: Any, dim: int, other: int, _share: float) -> list[TensorOp]:
    sizes, steps = list(extents_of(x)), [1] * 4
    starts: list[Any] = [0] * 4
    sizes[dim], starts[dim], steps[dim] = sizes[dim], sizes[dim] - 1, -1
    return [slice_of(x, starts, sizes, steps)]


STEPS = {
    "merged": merged,
    "centered": centered,
    "joined": joined,
    "turned": turned,
    "padded": padded,
    "cut": cut,
    "exp": lambda x, *_: [elementwise("tanh", x)],
    "softmax": lambda x, dim, other, _: [SoftmaxOp.get(x, other)],
    "scan": lambda x, dim, other, _: [ScanOp.get(x, "add", other, reverse=dim == 0)],
}


def check_random_group(seed: int) -> None:
    random = Random(seed)
    shape = [random.choice([1, 2, 3, 4]) for _ in range(4)]
    sizes = [symbol(f"n{n}") if n > 1 and random.random() < 0.7 else n for n in shape]
    layout = random.choice(["abcd", "acdb", "aBcd8b", "ABcd2a4b", "badc"])
    build, every = random_build(random), random.random() < 0.3
    assert check_sizes(build, [floats(*shape)], [sizes], layouts=[layout], every=every), seed


@pytest.mark.parametrize("seed", range(8))
def test_random_group(seed: int) -> None:
    check_random_group(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_more_random_groups(seed: int) -> None:
    check_random_group(seed)
