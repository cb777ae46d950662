"""Equivalent graphs have equal results, bitwise where nothing is summed, with all numerics."""

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from onnx import ModelProto, printer

import braid
from braid.interpreted import interpret
from test.fuzz.metamorphic_graphs import grown, inputs, model
from test.fuzz.scaled_products import bounds, scaled
from test.fuzz.window_pairs import WAYS, as_written, windows
from test.fuzz.window_pairs import model as model_of_windows

EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "25"))
few_examples = settings(
    max_examples=max(1, EXAMPLES // 5),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def assert_same_bits(found: Any, expected: Any, who: str) -> None:
    """Assert that the bits are equal, except those of NaN."""
    both_nan = np.isnan(found) & np.isnan(expected)
    is_same = both_nan | (found.view(np.uint32) == expected.view(np.uint32))
    places = np.argwhere(~is_same)
    assert not len(places), f"{who}: {found[~is_same][:4]} instead of {expected[~is_same][:4]}"


def run(proto: ModelProto, values: dict[str, Any], numerics: str) -> list[Any]:
    return list(braid.compile(proto, jobs=1, numerics=numerics).run_named(values).values())


def check(seed: int) -> None:
    plain, result, shape = grown(seed, "a", rewrites=False)
    other, changed, _ = grown(seed, "b", rewrites=True)
    values = inputs(seed, shape)
    as_written, rewritten = model([(plain, result)], shape), model([(other, changed)], shape)
    note(printer.to_text(as_written) + printer.to_text(rewritten))
    with np.errstate(all="ignore"):
        (expected,) = interpret(as_written).run_named(values).values()
        (same,) = interpret(rewritten).run_named(values).values()
        assert_same_bits(same, expected, "rewritten, interpreted")
    assert_same_bits(run(rewritten, values, "strict")[0], expected, "strict")
    both = model([(plain, result), (other, changed)], shape)
    first, second = run(both, values, "fast")
    assert_same_bits(first, expected, "fast, as written")
    assert_same_bits(second, expected, "fast, rewritten")


@few_examples
@given(st.integers(0, 2**32))
def test_equivalent_graphs_have_equal_bits(seed: int) -> None:
    check(seed)


def check_products(seed: int) -> None:
    case = scaled(seed)
    note(printer.to_text(case.model))
    with np.errstate(all="ignore"):
        expected = list(interpret(case.model).run_named({"x": case.x}).values())
    for numerics in ("strict", "fast"):
        found = run(case.model, {"x": case.x}, numerics)
        for number, (one, written) in enumerate(zip(found, expected, strict=True)):
            exact, error, said = bounds(case, number)
            with np.errstate(all="ignore"):
                # The rewritten form may be further from the exact result than the bound of all
                # roundings.
                away = np.abs(one.astype(np.float64) - exact)
                own = np.abs(written.astype(np.float64) - exact)
            is_wrong = said & ~(away <= error + own)
            chain = [(op, known.ravel()[:1]) for op, known in case.chains[number]]
            assert not is_wrong.any(), (
                f"{numerics}, {chain}: {one[is_wrong][:3]} instead of {written[is_wrong][:3]}"
            )
            hidden = ~np.isfinite(case.x).all(axis=1)
            same = np.isfinite(one[hidden]) == np.isfinite(written[hidden])
            assert same.all(), f"{numerics}, {chain}: what is not finite is lost"


@few_examples
@given(st.integers(0, 2**32))
def test_folded_scales_and_shifts_are_within_error_bounds(seed: int) -> None:
    check_products(seed)


def check_windows(seed: int) -> None:
    case = windows(seed)
    (expected,) = interpret(model_of_windows(case, as_written)).run_named({"x": case.x}).values()
    allowed = 1e-4 * np.abs(expected).max(initial=1)
    for way in WAYS:
        proto = model_of_windows(case, way)
        note(printer.to_text(proto))
        for numerics in ("strict", "fast"):
            (found,) = run(proto, {"x": case.x}, numerics)
            assert found.shape == expected.shape
            who = f"{numerics}, {way.__name__}, {case.op} of {case.sizes}, pads {case.pads}"
            np.testing.assert_allclose(found, expected, rtol=0, atol=allowed, err_msg=who)


@few_examples
@given(st.integers(0, 2**32))
def test_equivalent_windows_have_equal_results(seed: int) -> None:
    check_windows(seed)
