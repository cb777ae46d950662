"""Random ONNX models over the whole op set."""

from typing import Any

from hypothesis import strategies as st
from onnx import TensorProto

from benchmarks.generators.random_models import (
    control_flow,
    elementwise,
    movement,
    products,
    reductions,
)
from benchmarks.generators.random_models.draft import FLOATS, INTEGERS, NARROW, Draft

DRAWERS = (
    *elementwise.DRAWERS,
    *movement.DRAWERS,
    *reductions.DRAWERS,
    *products.DRAWERS,
    *control_flow.DRAWERS,
)


TYPES = (*FLOATS, *INTEGERS, TensorProto.BOOL)


@st.composite
def _shapes(draw: Any, most_rank: int, largest: int) -> tuple[int, ...]:
    """Ranks from 0; now and then a dim is empty."""
    rank = draw(st.integers(0, most_rank))
    least = draw(st.sampled_from((1, 1, 1, 1, 1, 0)))
    extents = st.integers(least, largest if rank < 5 else 3)
    return tuple(draw(st.lists(extents, min_size=rank, max_size=rank)))


@st.composite
def drafts(draw: Any, most_ops: int = 6) -> Draft:
    """Return a graph of up to `most_ops` drawn ops on inputs of several types and ranks."""
    draft = Draft(draw)
    first = draw(st.sampled_from((TensorProto.FLOAT, TensorProto.FLOAT, *TYPES)))
    draft.input(first, draw(_shapes(6, 6)))
    if draw(st.booleans()):
        images = st.tuples(st.integers(1, 2), st.integers(1, 20), st.integers(1, 9))
        batch, channels, height = draw(images)
        type = draw(st.sampled_from((TensorProto.FLOAT, TensorProto.FLOAT, *NARROW)))
        draft.input(type, (batch, channels, height, draw(st.integers(1, 9))))
    if draw(st.booleans()):
        draft.input(draw(st.sampled_from(TYPES)), draw(_shapes(3, 6)))
    for _ in range(draw(st.integers(1, most_ops))):
        draw(st.sampled_from(DRAWERS))(draft)
    return draft
