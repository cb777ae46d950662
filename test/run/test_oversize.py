"""The oversize suite in small: compiled as one tiled kernel each, on one worker and on two."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import CallOp

import braid
from benchmarks.oversize.case import Case
from benchmarks.oversize.cases import CASES
from braid.driver.pipeline import graph_passes
from braid.driver.read_source import read_source
from braid.passes.fusion.select_fusion import SelectFusionPass
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.machines.load import load_target
from braid.universe import make_context

RULES = Path(__file__).parents[1] / "passes" / "fusion" / "Inputs" / "always-tiles.toml"
TOLERANCE = 1e-5


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def passes():
    """Return the default pipeline, with rules for which no tensor is too small."""
    return [
        replace(pass_, rules=str(RULES)) if isinstance(pass_, SelectFusionPass) else pass_
        for pass_ in graph_passes(load_target())
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_result_is_that_of_the_pieces(case: Case):
    model, inputs = case.build(case.small), case.inputs(case.small)
    expected = case.pieces(*inputs)
    for threads in (1, 2):
        actual = braid.compile(model, passes=passes(), threads=threads)(*inputs)
        error = np.abs(actual - expected).max() / np.abs(expected).max()
        assert error < TOLERANCE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_huge_tensor_is_in_no_buffer(case: Case):
    """Of the tensors that kernels write in the huge model, only small ones are left."""
    context = make_context()
    module = read_source(context, case.build(case.huge)).module
    run_pipeline(context, module, graph_passes(load_target()), verify=False)
    written = [
        int(np.prod(result.type.get_shape()))
        for op in module.walk()
        if isinstance(op, CallOp)
        for result in op.results
    ]
    inputs = case.inputs(case.huge)
    largest = max(*(array.size for array in inputs), written[-1])
    assert max(written) <= largest


def test_slices_that_are_joined_lie_in_one_tensor_only():
    """Too small for tiles, the slices could be views of the input and boxes of the result."""
    case = next(case for case in CASES if case.name == "unfold")
    inputs = case.inputs(case.small)
    actual, expected = braid.compile(case.build(case.small))(*inputs), case.pieces(*inputs)
    assert np.abs(actual - expected).max() < TOLERANCE * np.abs(expected).max()
