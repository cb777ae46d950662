"""From requests of a service to code for the sizes at which it pays, and its results."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import braid
from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.support.errors import BraidError

INTEGERS = """<ir_version: 9, opset_import: ["" : 18]>
g (uint8[n, 256] x, int8[256, 64] w) => (int32[n, 64] y) { y = MatMulInteger (x, w) }"""
PAIRS = """<ir_version: 9, opset_import: ["" : 18]>
g (float[n, 8] x, float[m, 8] z) => (float[n, 8] y) { y = Add (x, z) }"""
COPIES = """<ir_version: 9, opset_import: ["" : 18]>
g (float[n, 8] x) => (float[n, 8] y) { y = Relu (x) }"""
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(-9, 9, (256, 64), dtype=np.int8)


def compiled(text: str, profile: Path | None) -> tuple[braid.Model, list[Remark]]:
    """Return a model and the remarks of `select-variants`."""
    with collect_remarks() as remarks:
        model = braid.compile(
            onnx.parser.parse_model(text),
            use_profile=profile,
            threads=1,
            cache=False,
            cpu="x86-64-v3",
        )
    return model, [each for each in remarks if each.pass_name == "select-variants"]


def profile_of(path: Path, sizes: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"ops": {}, "sizes": sizes}))
    return path


def test_frequent_sizes_get_code_and_all_sizes_run(tmp_path: Path) -> None:
    counted = braid.compile(onnx.parser.parse_model(INTEGERS), profile=True, threads=1)
    for n in (9, 9, 9, 4):
        counted(np.zeros((n, 256), np.uint8), WEIGHTS)
    sizes = [each.to_json() for each in counted.profiled_sizes()]
    model, (said,) = compiled(INTEGERS, profile_of(tmp_path / "p.json", sizes))
    assert said.data["tried"] == 2
    assert "code of its own for n = 9 (75% of runs" in said.message
    for n in (4, 9, 5, 0):
        x = RANDOM.integers(0, 255, (n, 256)).astype(np.uint8)
        assert np.array_equal(model(x, WEIGHTS), x.astype(np.int32) @ WEIGHTS.astype(np.int32))


def test_nothing_is_added_where_it_does_not_pay(tmp_path: Path) -> None:
    sizes = [{"dims": {"n": 4}, "count": 9}]
    model, (said,) = compiled(COPIES, profile_of(tmp_path / "p.json", sizes))
    assert said.data["chosen"] == 0 and "no code of its own: at most n = 4" in said.message
    assert np.array_equal(model(-np.ones((4, 8), np.float32)), np.zeros((4, 8)))


def test_rare_sizes_are_not_tried(tmp_path: Path) -> None:
    sizes = [{"dims": {"n": n}, "count": 1} for n in range(1, 101)]
    _, (said,) = compiled(INTEGERS, profile_of(tmp_path / "p.json", sizes))
    assert said.message == "no code of its own: no size is in 2% of the runs"


def test_models_of_fixed_sizes_ignore_sizes(tmp_path: Path) -> None:
    fixed = COPIES.replace("n,", "3,")
    model, said = compiled(fixed, profile_of(tmp_path / "p.json", [{"dims": {"n": 4}, "count": 9}]))
    assert not said
    assert np.array_equal(model(np.ones((3, 8), np.float32)), np.ones((3, 8)))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([{"dims": {"m": 4}, "count": 9}], "'m', which is no open dim of the model"),
        ([{"dims": {"n": 4}, "count": -9}], "not a profile: -9 is not an integer"),
        ([{"dims": {"n": 1 << 62}, "count": 9}], "not a profile: .* is not an integer"),
    ],
)
def test_profiles_of_other_models_are_refused(
    tmp_path: Path, sizes: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(BraidError, match=message):
        compiled(COPIES, profile_of(tmp_path / "p.json", sizes))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n": 4}, "the profile does not count sizes of 'm', an open dim of the model"),
        ({"n": 4, "m": 5}, "the profile counts runs that the model refuses: .* is impossible"),
        (
            {"n": 1 << 60, "m": 1 << 60},
            "the profile counts runs that the model refuses: .* at most",
        ),
    ],
)
def test_sizes_that_the_model_refuses(tmp_path: Path, sizes: dict[str, int], message: str) -> None:
    profile = profile_of(tmp_path / "p.json", [{"dims": sizes, "count": 9}])
    with pytest.raises(BraidError, match=message) as refusal:
        compiled(PAIRS, profile)
    assert str(refusal.value).startswith(str(profile)) and "another model" in str(refusal.value)


def test_sizes_that_never_ran_say_nothing(tmp_path: Path) -> None:
    _, said = compiled(COPIES, profile_of(tmp_path / "p.json", [{"dims": {"n": 4}, "count": 0}]))
    assert said == []
