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
from benchmarks.generators.random_models.draft import FLOATS, INTEGERS, Draft

DRAWERS = (
    *elementwise.DRAWERS,
    *movement.DRAWERS,
    *reductions.DRAWERS,
    *products.DRAWERS,
    *control_flow.DRAWERS,
)


@st.composite
def drafts(draw: Any, most_ops: int = 6) -> Draft:
    """A graph of up to `most_ops` drawn ops on inputs of several types and ranks."""
    draft = Draft(draw)
    draft.input(TensorProto.FLOAT, tuple(draw(st.lists(st.integers(1, 6), max_size=5))))
    if draw(st.booleans()):
        images = st.tuples(st.integers(1, 2), st.integers(1, 20), st.integers(1, 9))
        batch, channels, height = draw(images)
        draft.input(TensorProto.FLOAT, (batch, channels, height, draw(st.integers(1, 9))))
    if draw(st.booleans()):
        type = draw(st.sampled_from((*FLOATS, *INTEGERS, TensorProto.BOOL)))
        draft.input(type, tuple(draw(st.lists(st.integers(1, 6), max_size=3))))
    for _ in range(draw(st.integers(1, most_ops))):
        draw(st.sampled_from(DRAWERS))(draft)
    return draft
