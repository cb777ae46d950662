"""What moved between two compilations: which kernels are compared, what differs, and why."""

import json
import re
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from benchmarks.models.small import small_squeezenet
from braid.tools.cli import main
from braid.tools.comparison.moved import moved
from braid.tools.explain.kernel_rows import Candidate, KernelRow

FAST = Candidate("ab->ba", "fast", "family", 1.0, 0.0, True, True)
SLOW = Candidate("ab->ab", "slow", "family", 3.0, 2.0)


def row(number: int, *ops: str, taken: Candidate = FAST, others: tuple[Candidate, ...] = ()):
    return KernelRow(
        number, ops, ops, tuple(ops), ops[0] if ops else "reorder", "cpu:0", 1.0, taken.seconds,
        0.0, None, "", None, taken.layouts, (), taken.family, "", "family", "the cheapest",
        (taken, *others), is_reorder=not ops,
    )  # fmt: skip


def test_the_other_choice_is_the_reason() -> None:
    strict = replace(SLOW, extra=0.0, is_taken=True)
    a, b = row(0, "conv", others=(SLOW,)), row(0, "conv", taken=strict)
    (change,) = moved([a], [b])
    assert change.what == ("layouts: ab->ba → ab->ab", "kernel: fast → slow")
    assert change.why == (
        "A had B's choice (ab->ab by slow), which would take 2 s more in all",
        "B was not offered A's choice (ab->ba by fast)",
    )
    assert change.seconds == (1.0, 3.0)


def test_fused_kernels_are_compared_with_their_parts() -> None:
    found = moved(
        [row(0, "conv", "relu"), row(1, "pool")], [row(0, "conv"), row(1, "relu"), row(2, "pool")]
    )
    assert {change.name: change.what for change in found} == {
        "conv + relu": ("1 kernel → 2 kernels",),
        "pool": (),
    }


def test_kernels_that_are_one_elsewhere_say_where() -> None:
    ops = [f"op{n}" for n in range(9)]
    whole = replace(row(0, *ops), device="npu:0")
    (change,) = moved([row(n, op) for n, op in enumerate(ops)], [whole])
    assert change.what == ("9 kernels → 1 kernel", "device: cpu:0 → npu:0")
    assert change.why[-2:] == ("A: 3 more", "B: 9 ops by fast, 1 s")


def test_a_reorder_of_one_side_stands_alone() -> None:
    found = moved([row(0, "conv")], [row(0, "conv"), row(1)])
    assert [change.what for change in found if change.what] == [("only in B",)]


def test_the_page_has_all_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, page = tmp_path / "net.onnx", tmp_path / "page.html"
    onnx.save(small_squeezenet(), model)
    command = ["diff", str(model), "--b", "--numerics strict", "--html", str(page), "--json"]
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    data = r'type="application/json" id="data">(.*?)</script>'
    text = re.search(data, page.read_text(), re.DOTALL)
    assert text is not None and result["files"] == [str(page)]
    found = json.loads(text[1])["difference"]
    assert len(found["kernels"]) == result["kernels_alike"] + len(result["kernels"])
    assert sum(k["seconds_a"] for k in found["kernels"]) == pytest.approx(result["seconds"]["a"])
    assert sum(k["seconds_b"] for k in found["kernels"]) == pytest.approx(result["seconds"]["b"])
    assert main(["compile", str(model), "-o", str(tmp_path / "net.braid")]) == 0
    command = ["diff", str(tmp_path / "net.braid"), str(model), "--html", str(page)]
    assert main(command) == 1 and "artifacts are not known" in capsys.readouterr().err
