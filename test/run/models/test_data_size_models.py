"""Whole models whose data decide sizes, as `benchmarks.data_sizes` times them, compiled."""

import numpy as np
import pytest

import braid
from benchmarks.data_sizes import CASES, TOLERANCE, peer
from benchmarks.models.compare import largest_error


@pytest.mark.parametrize("name", list(CASES))
def test_equal_to_onnx_runtime(name: str) -> None:
    case, random = CASES[name], np.random.default_rng(47)
    proto = case.make()
    model, session = braid.compile(proto), peer(proto)
    for _ in range(2):
        inputs = case.draw(random)
        wanted = session.run(None, dict(inputs))
        assert wanted[0].size > 0
        assert largest_error(list(model.run_named(inputs).values()), wanted) <= TOLERANCE
