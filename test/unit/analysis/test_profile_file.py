"""Profiles of several runs as one, against sums by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from braid.analysis.profile.profile_file import merge_records, read_record
from braid.analysis.profile.read_profile import OpStatistics, read_profile
from braid.support.errors import BraidError


def written(path: Path, ops: dict[str, Any], **other: Any) -> Path:
    path.write_text(json.dumps({"model": "m.onnx", **other, "ops": ops}))
    return path


def op(count: float, seconds: float, **layouts: tuple[float, float]) -> dict[str, Any]:
    of = {name: {"count": c, "seconds": s} for name, (c, s) in layouts.items()}
    return {"count": count, "seconds": seconds, **({"layouts": of} if of else {})}


def test_counts_and_seconds_add_up_by_op_and_by_layouts(tmp_path: Path) -> None:
    first = written(
        tmp_path / "a", {"x+y": op(2, 3.0, l0=(2, 3.0)), "z": op(1, 0.5)}, inputs={"i": [2]}
    )
    second = written(
        tmp_path / "b", {"x+y": op(5, 1.0, l0=(1, 0.25), l1=(4, 0.75)), "new": op(7, 7.0)}
    )
    third = written(tmp_path / "c", {"x+y": op(0, 0.0), "z": op(2, 1.0)}, inputs={"i": [2]})
    merged = tmp_path / "merged"
    merged.write_bytes(merge_records([first, second, third]).to_bytes())
    record = read_record(merged)
    assert (record.model, record.inputs) == ("m.onnx", {"i": (2,)})
    found = {name: (each.count, each.seconds) for name, each in record.ops.items()}
    assert found == {"x+y": (7, 4.0), "z": (3, 1.5), "new": (7, 7.0)}
    profile = read_profile(merged)
    expected = {"l0": OpStatistics(3, 3.25), "l1": OpStatistics(4, 0.75)}
    assert profile.ops["y"] == OpStatistics(7, 4.0, expected, ("x", "y"))


def test_the_order_of_profiles_does_not_matter(tmp_path: Path) -> None:
    paths = [written(tmp_path / str(n), {"x": op(n, 2.0**n, l0=(n, 2.0**n))}) for n in range(4)]
    assert merge_records(paths).ops == merge_records(paths[::-1]).ops


@pytest.mark.parametrize(
    ("ops", "other", "message"),
    [
        ({"x+y": op(1, 1.0)}, {"inputs": {"i": [3]}}, "had inputs i=3, but those of .* i=2"),
        ({"x": op(1, 1.0), "z": op(1, 1.0)}, {}, "op 'x' is counted as 'x', but .* as 'x\\+y'"),
        ({"x+y": op(1, 1.0), "z+v": op(1, 1.0)}, {}, "op 'z' is counted as 'z\\+v', but .* as 'z'"),
        ({"other": op(1, 1.0)}, {}, "the profile has no op of"),
        ({"x+y": op(-1, 1.0)}, {}, "not a profile of braid: -1 is neither"),
        ({"x+y": {"seconds": 1.0}}, {}, "not a profile of braid"),
        ({"x+y": op(1, 1.0, l0=(1, float("inf")))}, {}, "not a profile of braid"),
        ({"x+y": op(1e-300, 1e10)}, {}, "not a profile of braid: .* more than a float holds"),
        ({"x+y": op(True, 1.0)}, {}, "not a profile of braid: True is neither"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    ops: dict[str, Any], other: dict[str, Any], message: str, tmp_path: Path
) -> None:
    first = written(tmp_path / "a", {"x+y": op(2, 3.0), "z": op(1, 1.0)}, inputs={"i": [2]})
    second = written(tmp_path / "b", ops, **other)
    with pytest.raises(BraidError, match=message) as raised:
        merge_records([first, second])
    assert raised.value.location is not None and raised.value.location.file == str(second)


def test_sums_that_overflow_are_refused(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, {"x": op(1, 1.7e308)}) for name in "ab"]
    with pytest.raises(BraidError, match="op 'x': inf s of 2 runs"):
        merge_records(paths)


def test_tables_of_other_tools_are_not_merged(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("Input Op,Count,Total Time (in ms)\nx,1,2\n")
    with pytest.raises(BraidError, match="not a profile of braid"):
        merge_records([table, table])
    with pytest.raises(BraidError, match="cannot read profile"):
        merge_records([tmp_path / "missing"])


def sized(path: Path, ops: dict[str, Any], counts: dict[int, int], dim: str = "n") -> Path:
    sizes = [{"dims": {dim: size}, "count": count} for size, count in counts.items()]
    return written(path, ops, sizes=sizes, inputs={"x": [max(counts)]})


def test_counts_of_sizes_add_up_and_times_of_other_shapes_do_not(tmp_path: Path) -> None:
    first = sized(tmp_path / "a", {"x": op(2, 3.0)}, {4: 2})
    second = sized(tmp_path / "b", {"x": op(9, 1.0)}, {4: 1, 8: 8})
    alike = sized(tmp_path / "c", {"x": op(1, 1.0)}, {4: 1})
    merged = tmp_path / "merged"
    merged.write_bytes(merge_records([first, second]).to_bytes())
    record = read_record(merged)
    assert [(dict(each.sizes), each.count) for each in record.sizes] == [
        ({"n": 8}, 8),
        ({"n": 4}, 3),
    ]
    assert (record.ops["x"].count, record.ops["x"].seconds, record.inputs) == (11, None, {})
    assert merge_records([first, alike]).ops["x"].seconds == 4.0
    with pytest.raises(BraidError, match=r"the runs have sizes of m, but those of .* of n"):
        merge_records([first, sized(tmp_path / "d", {"x": op(1, 1.0)}, {4: 1}, dim="m")])


def test_formats_of_a_later_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="has version 3 of the format, this braid reads 2"):
        read_record(written(tmp_path / "a", {}, version=3))
