"""Random groups in random layouts against the semantics of their ops."""

from math import prod

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp

LAYOUTS = ["abcd", "acdb", "aBcd8b", "aBcd16b", "ABcd2a4b", "badc"]
RANK = 4


def pad(draw, x):
    low, high = (draw(st.lists(st.integers(0, 2), min_size=4, max_size=4)) for _ in range(2))
    return [PadOp.get(x, low, high, draw(st.sampled_from([0, -1.5])))]


def cut(draw, x):
    bounds = [sorted(draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2)))
              for n in shape_of(x)]  # fmt: skip
    return [SliceOp.get(x, [a for a, _ in bounds], [b - a + 1 for a, b in bounds])]


def transpose(draw, x):
    return [TransposeOp.get(x, draw(st.permutations(range(RANK))))]


def unary(draw, x):
    return [elementwise(draw(st.sampled_from(["neg", "tanh", "exp", "abs"])), x)]


def with_itself(draw, x):
    reduced = ReduceOp.get(x, "maximum", draw(st.sets(st.integers(0, 3), max_size=2)))
    return [reduced, elementwise("sub", x, reduced)]


def join(draw, x):
    negated = elementwise("neg", x)
    return [negated, ConcatOp.get([x, negated, x], draw(st.integers(0, 3)))]


def flatten(draw, x):
    shape = shape_of(x)
    dim = draw(st.integers(0, 2))
    merged = [*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :], 1]
    return [ReshapeOp.get(x, merged)]


def window(draw, x):
    pads = draw(st.lists(st.integers(0, 1), min_size=2, max_size=2))
    return [
        PoolOp.get(
            x,
            draw(st.sampled_from(["max", "add"])),
            (2, 2),
            strides=(draw(st.integers(1, 2)), 1),
            pad_low=pads,
            pad_high=(1, 1),
            dilations=(1, 1),
        )
    ]


def softmax(draw, x):
    return [SoftmaxOp.get(x, draw(st.integers(0, 3)))]


STEPS = [pad, cut, transpose, unary, with_itself, join, flatten, window, softmax]


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_groups(check, data) -> None:
    draw = data.draw
    shape = draw(st.tuples(*(st.sampled_from(e) for e in ([1, 3], [3, 8, 20], [4, 5], [4, 7]))))
    source, target = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(LAYOUTS))
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4))

    def build(x):
        ops = []
        for step in steps:
            if prod(shape_of(x)) < 20_000:
                ops.extend(step(draw, x))
                x = ops[-1].results[0]
        return ops

    type = with_layout(TensorType(f32, shape), Layout.parse(source))
    check([type], build, layouts=[target])
