"""A crash inside a pipeline of `braid` leaves a reproducer."""

import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import braid.driver.pipeline
from braid.tools import braid_opt, cli


@pytest.fixture
def crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the default pipeline crash in its second pass; the path of a model."""
    pipeline = "canonicalize,mlir-opt{executable=no-such-tool},cse"
    monkeypatch.setattr(braid.driver.pipeline, "GRAPH_PIPELINE", pipeline)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [info], [output])
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_crash_is_named_where_no_reproducer_can_be_written(
    crash: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(crash.parent / "none"))
    assert cli.main(["compile", str(crash), "--emit=mlir"]) == 1
    assert "internal error: PassCrashError: pass 'mlir-opt' crashed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "m.braid"], ""),
        (
            ["--emit=mlir", "--numerics=strict", "--kernels=best"],
            'numerics = "strict", kernels = "best"',
        ),
    ],
)
def test_a_crash_can_be_reproduced(
    crash: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compile", str(crash), *options]) == 1
    error = capsys.readouterr().err
    assert error.startswith("braid: error: internal error: pass 'mlir-opt' crashed")
    match = re.search(r"'braid-opt --run-reproducer (\S+\.mlir) --debug' shows it again", error)
    assert match is not None and Path(match[1]).parent == crash.parent
    assert '"func.func"' in Path(match[1]).read_text()
    # Default settings too, so that no environment changes them when the pass runs again.
    assert f"braid.settings = #braid.settings<{{{said}}}>" in Path(match[1]).read_text()
    assert braid_opt.main(["--run-reproducer", match[1]]) == 1
    assert "pass 'mlir-opt' crashed" in capsys.readouterr().err


def test_an_interrupt_inside_of_a_module_in_c_is_not_a_crash(
    crash: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def apply(*_: object) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("braid.passes.canonicalize.cse.CSEPass.apply", apply)
    monkeypatch.setattr(braid.driver.pipeline, "GRAPH_PIPELINE", "cse")
    assert cli.main(["compile", str(crash), "--emit=mlir"]) == 130
    (crash.parent / "m.mlir").write_text("func.func private @f()")
    assert braid_opt.main([str(crash.parent / "m.mlir"), "-p", "cse"]) == 130
    assert capsys.readouterr().err == ""
