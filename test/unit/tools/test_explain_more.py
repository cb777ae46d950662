"""What explain can add: machine code, times at other sizes, node data of Model Explorer."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import onnx
import pytest

from benchmarks.models.small import small_squeezenet
from braid.tools.cli import main

SCHEMA = Path(__file__).parents[3] / "tools/explain/page.schema.json"
OPEN = """func.func @main(%x: tensor<?x64xf32, #braid.sizes<["rows"]>>, %w: tensor<64x64xf32>)
    -> tensor<?x64xf32, #braid.sizes<["rows"]>> {
  %a = braid.matmul %x, %w {braid.name = "a"} : (tensor<?x64xf32, #braid.sizes<["rows"]>>,
    tensor<64x64xf32>) -> tensor<?x64xf32, #braid.sizes<["rows"]>>
  %b = braid.tanh %a {braid.name = "b"} : (tensor<?x64xf32, #braid.sizes<["rows"]>>)
    -> tensor<?x64xf32, #braid.sizes<["rows"]>>
  func.return %b : tensor<?x64xf32, #braid.sizes<["rows"]>>
}"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("more") / "net.onnx"
    onnx.save(small_squeezenet(), path)
    return path


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["explain", *arguments, "--json"]) == 0
    page: Any = json.loads(capsys.readouterr().out)["result"]
    jsonschema_rs.validator_for(json.loads(SCHEMA.read_text())).validate(page["page"])
    return page


def test_kernels_have_their_code(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = explained(capsys, str(model), "--html", str(tmp_path / "p.html"), "--assembly")["page"]
    assert page["code"] and all(kernel["code"] in page["code"] for kernel in page["kernels"])
    for symbol, text in page["code"].items():
        assert text.startswith(f"{symbol}:") and "\n  ret" in text and ".p2align" not in text
    name = page["kernels"][0]["ops"][0]
    story = explained(capsys, str(model), "--why", name, "--assembly")["why"]
    assert story["code"] == [page["code"][page["kernels"][0]["code"]]]
    assert main(["explain", str(model), "--assembly"]) == 1
    assert "--html and --why" in capsys.readouterr().err


def test_a_gpus_code_is_ptx(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(model), "--target", "gpu-emulated", "--assembly", "--why"]
    page = explained(capsys, str(model), "--target", "gpu-emulated")["page"]
    on_gpu = next(
        k for k in page["kernels"] if "gpu" in k["device"] and k["computes"] != ["reorder"]
    )
    (text,) = explained(capsys, *arguments, on_gpu["ops"][0])["why"]["code"]
    assert ".entry" in text and "ret;" in text


def test_open_models_have_times_at_other_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "open.mlir"
    path.write_text(OPEN)
    sizes = explained(capsys, str(path))["page"]["sizes"]
    likely = sizes["likely"]["rows"]
    points = {point["size"]: number for number, point in enumerate(sizes["points"])}
    assert likely in points and 8 * likely in points
    for number, point in enumerate(sizes["points"]):
        total = sum(kernel["seconds"][number] for kernel in sizes["kernels"])
        assert total == pytest.approx(point["seconds"])
    seconds = [sizes["points"][points[size]]["seconds"] for size in sorted(points)]
    assert seconds == sorted(seconds) and seconds[-1] > seconds[0]
    # What was asked for is what others are compared with.
    asked = explained(capsys, str(path), "--at", "rows=96")["page"]["sizes"]
    assert asked["likely"] == {"rows": 96}


def test_fixed_models_have_no_other_sizes(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = explained(capsys, str(model))["page"]
    assert page["sizes"] is None and page["code"] == {} and page["difference"] is None


def test_node_data_adds_up(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nodes.json"
    page = explained(capsys, str(model), "--model-explorer", str(file))["page"]
    data = json.loads(file.read_text())
    graph = onnx.load(model).graph
    by_node = {node.name or f"<node_{i}>": node.output[0] for i, node in enumerate(graph.node)}
    results = data["results"]
    # What is folded when the model is read has no node.
    by_node = {node: tensor for node, tensor in by_node.items() if node in results}
    assert len(by_node) > 50
    for node, tensor in by_node.items():
        assert results[node] == results[tensor]
    total = sum(results[node]["value"] for node in by_node)
    assert total == pytest.approx(
        sum(k["time"] for k in page["kernels"] if k["main"]) * 1e6, rel=0.01
    )
    assert [stop["stop"] for stop in data["gradient"]] == [0, 1]
