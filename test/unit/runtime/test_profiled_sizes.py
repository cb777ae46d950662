"""Sizes that runs of an open model had, as the C runtime counts them."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

import braid
from braid.support.size_counts import MOST_SIZES

TEXT = """<ir_version: 9, opset_import: ["" : 18]>
g (float[n, width] x) => (float[n, width] y) { y = Relu(x) }"""


def run(model: braid.Model, n: int) -> None:
    model(np.ones((n, 2), np.float32))


def open_model(profile: bool, *frequent: dict[str, int]) -> braid.Model:
    model = onnx.parser.parse_model(TEXT)
    return braid.compile(model, threads=1, profile=profile, specialize=frequent)


@pytest.fixture(scope="module")
def model() -> braid.Model:
    return open_model(profile=True)


def test_frequent_sizes_are_kept_with_bounds_of_their_counts(model: braid.Model) -> None:
    drawn = np.random.default_rng(0).zipf(1.3, 6000)
    sizes = [min(int(n), 900) for n in drawn]
    model.reset_profile()
    for n in sizes:
        run(model, n)
    true, found = Counter(sizes), model.profiled_sizes()
    assert len(true) > len(found) == MOST_SIZES
    for each in found:
        assert each.count - each.error <= true[dict(each.sizes)["n"]] <= each.count
    kept = {dict(each.sizes)["n"] for each in found}
    assert {n for n, count in true.items() if count > len(sizes) / MOST_SIZES} <= kept
    assert found[0].sizes == (("n", 1), ("width", 2))
    assert sum(each.count for each in found) == len(sizes)  # as Space-Saving keeps it
    model.reset_profile()
    assert model.profiled_sizes() == ()


def test_contexts_of_threads_are_added_up(model: braid.Model) -> None:
    model.reset_profile()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, [model] * 600, [1, 2, 3] * 200))
    found = {dict(each.sizes)["n"]: (each.count, each.error) for each in model.profiled_sizes()}
    assert found == dict.fromkeys((1, 2, 3), (200, 0))


def test_code_for_some_sizes_is_counted_with_the_rest() -> None:
    model = open_model(True, {"n": 3})
    for n in (3, 3, 4):
        run(model, n)
    assert [(dict(each.sizes)["n"], each.count) for each in model.profiled_sizes()] == [
        (3, 2),
        (4, 1),
    ]


def test_nothing_is_counted_without_a_profile() -> None:
    model = open_model(profile=False)
    run(model, 2)
    assert model.profiled_sizes() == ()
