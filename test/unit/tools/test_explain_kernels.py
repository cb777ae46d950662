"""What `braid explain` says of kernels: times that add up, reasons, and what is next best."""

import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from jsonschema_rs import validator_for

from benchmarks.models.small import small_squeezenet
from braid.tools.cli import main
from braid.tools.explain.kernel_rows import Candidate, KernelRow, Measured, Roofline
from braid.tools.explain.reasons import reason_of
from braid.tools.explain.summary import BETWEEN, bottleneck, times_of
from test.unit.tools.test_explain_page import SCHEMA


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain")
    onnx.save(small_squeezenet(), path / "net.onnx")
    return path


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> Mapping[str, Any]:
    assert main(["explain", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["result"]


@pytest.fixture(scope="module")
def page(folder: Path) -> Mapping[str, Any]:
    with redirect_stdout(StringIO()) as said:
        assert main(["explain", str(folder / "net.onnx"), "--json"]) == 0
    return json.loads(said.getvalue())["result"]["page"]


def test_the_page_is_what_its_schema_says(page: Mapping[str, Any]) -> None:
    validator_for(SCHEMA).validate(page)


def test_times_add_up(page: Mapping[str, Any]) -> None:
    summary, kernels = page["summary"], page["kernels"]
    total = sum(kernel["time"] for kernel in kernels) + summary["between"]
    assert total == pytest.approx(summary["seconds"], rel=1e-9)
    kinds = sum(kind["seconds"] for kind in summary["kinds"])
    assert kinds == pytest.approx(summary["seconds"], rel=1e-9)
    starts = sum(kernel["starts"] for kernel in kernels)
    assert summary["between"] == pytest.approx(starts, rel=1e-9) and starts > 0
    counts = {kind["kind"]: kind["kernels"] for kind in summary["kinds"]}
    assert counts.pop(BETWEEN) == 0 and sum(counts.values()) == len(kernels)


def test_each_kernel_has_a_reason_and_what_is_next_best(page: Mapping[str, Any]) -> None:
    for kernel in page["kernels"]:
        assert kernel["reason"] and kernel["layouts"] and kernel["model_ops"]
        (taken,) = (each for each in kernel["candidates"] if each["is_taken"])
        assert taken["layouts"] == kernel["layouts"]
        others = [e["extra"] for e in kernel["candidates"] if not e["is_taken"]]
        known = [extra for extra in others if extra is not None]
        assert all(extra >= 0 for extra in known)
        best = kernel["next_best"]
        assert best is None if not known else best["extra"] == min(known)
    assert any(kernel["next_best"] for kernel in page["kernels"])


def test_ops_without_a_kernel_have_a_reason(page: Mapping[str, Any]) -> None:
    free = {name: each["why"] for each in page["free"] for name in each["ops"]}
    concats = [n for n in page["graph"]["nodes"] if n["kind"] == "concat"]
    assert concats and all("lie where its result" in free[node["name"]] for node in concats)
    assert all(not node["kernels"] and node["why"] for node in concats)


def test_kernels_know_their_ops_in_the_graph(page: Mapping[str, Any]) -> None:
    nodes = page["graph"]["nodes"]
    found = {number for node in nodes for number in node["kernels"]}
    assert found == {kernel["id"] for kernel in page["kernels"]}
    assert {node["kind"] for node in nodes} >= {"input", "output", "conv"}


def test_ir_after_each_pass_that_changed_it(page: Mapping[str, Any]) -> None:
    conv = next(kernel for kernel in page["kernels"] if kernel["kind"] == "conv")
    passes = [change["after"] for change in conv["history"]]
    assert passes[0] == "as read" and {"apply-fusion", "apply-layouts"} <= set(passes)
    texts = [change["text"] for change in conv["history"]]
    assert all(before != after for before, after in pairwise(texts))
    assert "braid.fused" in texts[-1] and "braid.conv" in texts[0]


def test_memory_says_why_tensors_live(page: Mapping[str, Any]) -> None:
    (plan,) = page["memory"]["plans"]
    assert max(b["offset"] + b["size"] for b in plan["blocks"]) <= plan["arena"]
    for block in plan["blocks"]:
        assert block["why"]
        assert all(0 <= step < len(plan["steps"]) for step in block["readers"])
    assert any("kept for" in block["why"] for block in plan["blocks"])


def test_measured_beside_predicted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, profile = str(folder / "net.onnx"), folder / "p.json"
    assert main(["run", model, "--random", "--runs", "3", "-q", "--profile", str(profile)]) == 0
    capsys.readouterr()
    page = explained(capsys, model, "--use-profile", str(profile))["page"]
    record = json.loads(profile.read_text())["ops"]
    measured = [kernel for kernel in page["kernels"] if kernel["measured"]]
    assert measured
    for kernel in measured:
        entry = record["+".join(kernel["ops"])]
        assert kernel["time"] == pytest.approx(entry["seconds"] / entry["count"])
        assert kernel["predicted"] > 0
    for kernel in page["kernels"]:
        assert (kernel["measured"] is None) == bool(kernel["not_measured"])


def row(id: int, seconds: float, **changes: Any) -> KernelRow:
    taken = Candidate("ab->ab", "gemm", "family", seconds, 0.0, is_taken=True)
    made = KernelRow(
        id, (f"k{id}",), (f"k{id}",), ("matmul",), "matmul", "cpu:0", 1.0, seconds, 0.1, None,
        "no profile was given", Roofline(seconds / 2, "memory", {}, 1, 1), "ab->ab", (), "gemm",
        "", "family", "", (taken,),
    )  # fmt: skip
    return replace(made, **changes)


def test_what_the_clock_says_is_not_scaled() -> None:
    rows = [replace(row(n, 1.0), measured=Measured(2.0, None, None, None, 5)) for n in range(3)]
    times = times_of(rows, 6.5, (6.0, 6.5, 7.0))
    assert times.between == pytest.approx(0.5) and times.is_measured
    assert sum(kind.seconds for kind in times.kinds) == pytest.approx(6.5)
    assert times_of(rows, 5.0).between == pytest.approx(-1.0)
    assert times.predicted == pytest.approx(3.3)
    moved = times_of([row(0, 1.0)], transfers=0.4)
    assert moved.seconds == pytest.approx(1.5) and moved.between == pytest.approx(0.1)
    assert sum(kind.seconds for kind in moved.kinds) == pytest.approx(moved.seconds)


def test_reorders_and_recomputation_stand_apart() -> None:
    rows = [row(0, 1.0), row(1, 2.0, is_reorder=True), row(2, 4.0, is_recomputed=True)]
    times = times_of(rows)
    assert (times.reorders, times.recomputed) == (2.0, 4.0)


def test_the_bottleneck() -> None:
    text = bottleneck([row(0, 8.0), row(1, 2.0)], 10.2)
    assert text.startswith("k0 on cpu:0 is predicted to take 8 s, 78% of one run")
    assert "50% of its roofline, which memory bandwidth sets" in text
    assert "most to gain in it: 4 s" in text
    many = [row(n, 1e-6) for n in range(100)]
    assert bottleneck(many, 3e-4, 2e-4).startswith("Starting 100 kernels")
    assert bottleneck(many, 1e-4, 0.0).startswith("100 kernels of matmul take 100%")
    assert bottleneck([row(0, 1.0)], 9.0, 1.0, 7.0).startswith("Transfers between devices")
    cached = [row(0, 8.0, roofline=Roofline(16.0, "memory", {}, 1, 1))]
    assert "at 200% of its roofline" in bottleneck(cached, 8.0)
    assert "operands are in caches" in bottleneck(cached, 8.0)
    assert bottleneck([], 0.0) == "Nothing takes time."


def test_a_roofline_that_predicts_is_not_reached() -> None:
    predicted = row(0, 8.0, source="roofline")
    assert predicted.roofline_share is None
    assert "what memory bandwidth takes at the least" in bottleneck([predicted], 8.0)
    measured = replace(predicted, measured=Measured(16.0, None, None, None, 5))
    assert measured.roofline_share == pytest.approx(0.25)


def test_reasons() -> None:
    taken = Candidate("ab->ab", "gemm", "family", 2.0, 0.0, is_taken=True)
    cheaper = Candidate("ba->ba", "gemm", "family", 1.5, 3.0, is_exact=False)
    rival = Candidate("ab->ab", "generic", "family", 9.0, 7.0)
    text = reason_of([taken, cheaper, rival], "gemm", True, False)
    assert "ba->ba would save 500 ms a run here" in text
    assert "at most 3 s more in all" in text
    assert "'gemm' is the cheapest of 2 kernels" in text and "record of a search" in text
    assert "no other layouts" in reason_of([taken], "gemm", False, False)
    assert "nothing around it fits" in reason_of(
        [taken, replace(cheaper, extra=None)], "gemm", False, False
    )
    assert "generic loops" in reason_of([replace(taken, family="generic")], "generic", False, False)


def test_why(folder: Path, page: Mapping[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "net.onnx")
    kernel = next(each for each in page["kernels"] if each["kind"] == "conv")
    name = kernel["model_ops"][0]
    assert main(["explain", model, "--why", name]) == 0
    said = capsys.readouterr().out
    assert f"Kernel: {kernel['name']}" in said and f"because: {kernel['reason']}" in said
    assert "weighed for it:" in said and "rejected:" in said and "taken" in said
    assert "Passes that changed it:" in said and "apply-layouts:" in said
    why = explained(capsys, model, "--why", name)["why"]
    assert name in why["ops"] and [k["id"] for k in why["kernels"]] == [kernel["id"]]
    concat = page["free"][0]["ops"][0]
    assert main(["explain", model, "--why", concat]) == 0
    assert "No kernel: concat moves nothing" in capsys.readouterr().out
    assert main(["explain", model, "--why", name + "x"]) == 1
    assert "no op or tensor of the model is called" in capsys.readouterr().err
