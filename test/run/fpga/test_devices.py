"""Models whose integer part runs as a circuit beside the CPU: `--target fpga-sim`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import braid
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.lowering.fpga.rtl import verilate
from braid.lowering.fpga.rtl.verilate import lint, shared_library
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, default_cache
from test.run.fpga.exported import MODELS, plain, quantized
from test.run.fpga.test_models import turned
from test.run.fpga.testbenches import run_testbench
from test.unit.runtime.test_run_model import run_model as run_model

BRAID = Path(sys.executable).with_name("braid")
TWICE = "module twice_of(input [7:0] a, output [7:0] b);\n  assign b = a << 1;\nendmodule\n"
DRIVER = """#include "Vtwice_of.h"
extern "C" __attribute__((visibility("default"))) int twice(int number) {
  VerilatedContext context;
  Vtwice_of model(&context);
  model.a = number;
  model.eval();
  return model.b;
}
"""
TARGETS = ("host", "npu-small", "gpu-emulated", "fpga-sim")


@pytest.fixture(scope="module")
def small() -> ModelProto:
    return quantized(plain(1, 8, (3,)))


def image(model: ModelProto, seed: int = 0) -> np.ndarray:
    dims = model.graph.input[0].type.tensor_type.shape.dim
    shape = [dim.dim_value for dim in dims]
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def same_on_all_targets(model: ModelProto) -> None:
    x = image(model)
    results = [braid.compile(model, target=target)(x) for target in TARGETS]
    assert np.std(results[0]) > 0
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_answers_are_the_same_on_all_targets(small: ModelProto) -> None:
    same_on_all_targets(small)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_answers_of_models_are_the_same_on_all_targets(name: str) -> None:
    same_on_all_targets(quantized(MODELS[name](), per_channel=True))


def test_transposes_and_a_flatten_between_a_convolution_and_a_product() -> None:
    """All of it is one circuit, with memories for exchanges of rows and columns."""
    model = turned(6)
    compiled, x = braid.compile(model, target="fpga-sim"), image(model)
    result = compiled(x)
    assert np.std(result) > 0
    np.testing.assert_array_equal(result, braid.compile(model)(x))
    predicted = compiled.device_seconds()["fpga:0"]
    assert compiled.launched_seconds()["fpga:0"] == pytest.approx(predicted, abs=1e-8)
    shown = str(emit_model(model, "hls", CompileOptions(target="fpga-sim")))
    assert shown.count("braid_hls.design") == 1
    assert shown.count("braid_hls.permute") == 2


def test_a_launch_takes_as_long_as_was_predicted(small: ModelProto) -> None:
    """The circuit counts its cycles; the prediction was made without it."""
    model = braid.compile(small, target="fpga-sim")
    assert model.devices == {"cpu:0": "cpu", "fpga:0": "rtl"}
    for seed in range(3):
        model(image(small, seed))
    predicted = model.device_seconds()["fpga:0"]
    assert predicted > 0
    assert model.launched_seconds()["fpga:0"] == pytest.approx(3 * predicted, abs=1e-8)


def test_frames_and_resources_are_those_of_the_report(small: ModelProto, tmp_path: Path) -> None:
    text = str(emit_model(small, "report", CompileOptions(target="fpga-sim")))
    (frames,) = re.findall(r"([\d,]+) frames per second", text)
    slices, tables = (
        re.findall(rf"{name} +([\d,]+) of", text)[0] for name in ("DSP slices", "look-up tables")
    )
    onnx.save(small, tmp_path / "small.onnx")
    braid.compile(small, target="fpga-sim").save(tmp_path / "small.braid")
    assert braid.load(tmp_path / "small.braid").device_frames()["fpga:0"] > 1000
    options = ["--target", "fpga-sim"]
    for path, more in ((tmp_path / "small.onnx", options), (tmp_path / "small.braid", [])):
        command = [BRAID, "run", path, "--random", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert f"fpga:0 takes {frames} frames per second in a stream" in done
        assert f"{slices} of 220 DSP slices" in done and f"{tables} of 53,200 look-up" in done


def unpacked(model: ModelProto, folder: Path, **options: Any) -> Path:
    """Return the only project in the archive of `--emit=hls-project`."""
    content = emit_model(model, "hls-project", CompileOptions(**options))
    assert isinstance(content, bytes)
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "x", "-C", folder], input=content, check=True)
    (project,) = folder.iterdir()
    return project


def simulated(project: Path) -> subprocess.CompletedProcess[str]:
    command = ["make", "-C", project, "simulate"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_project_for_vitis_checks_itself(small: ModelProto, tmp_path: Path) -> None:
    """For the part and at the clock of the target; a circuit that is wrong shows."""
    project = unpacked(small, tmp_path / "u250", target="fpga-u250")
    script = (project / "hls.tcl").read_text()
    assert "set_part xcu250-figd2104-2L-e\ncreate_clock -period 3.333\ncsim_design" in script
    done = simulated(project)
    assert done.returncode == 0 and "PASSED" in done.stdout, done.stderr
    source = project / f"{project.name}.cpp"
    changed, count = re.subn(
        r"const (beat_\w+ beat = in0.read\(\);)",
        r"\1 beat.lane[0] = beat.lane[0] + 1;",
        source.read_text(),
    )
    assert count == 2
    source.write_text(changed)
    done = simulated(project)
    assert done.returncode and "FAILED" in done.stdout


def test_a_project_names_its_part(small: ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (Path(braid.__file__).parent / "targets/machines/fpga-sim.toml").read_text()
    path.write_text(re.sub("^part = .*\n", "", text, flags=re.MULTILINE))
    with pytest.raises(BraidError, match="machine 'xc7z020' does not say which part"):
        emit_model(small, "hls-project", CompileOptions(target=str(path)))


def test_a_model_without_circuits_has_no_project() -> None:
    text = """func.func @main(%x: tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
      %y = braid.maximum %x, %x
          : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
      func.return %y : tensor<1x2x3x3xf32>
    }"""
    with pytest.raises(BraidError, match=r"nothing of the model .* 'hls-project': .* cpu:0"):
        emit_model(text.encode(), "hls-project", CompileOptions(target="fpga-u280"))
    with pytest.raises(BraidError, match="pinned to fpga") as error:
        emit_model(
            text.encode(), "hls", CompileOptions(target="fpga-u280", pin=["op:maximum=fpga"])
        )
    assert "lanes of f32" in str(error.value)


def test_a_stream_of_requests(small: ModelProto) -> None:
    model, host = braid.compile(small, target="fpga-sim"), braid.compile(small)
    images = [image(small, seed) for seed in range(6)]
    for given, result in zip(images, model.stream(images), strict=True):
        np.testing.assert_array_equal(result, host(given))


def test_an_artifact_runs_from_c(small: ModelProto, run_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.braid"
    braid.compile(small, target="fpga-sim").save(path)
    braid.compile(small).save(tmp_path / "host.braid")
    printed = [
        subprocess.run([run_model, file], capture_output=True, text=True, check=True).stdout
        for file in (path, tmp_path / "host.braid")
    ]
    assert printed[0] == printed[1]


def test_waveforms(small: ModelProto, tmp_path: Path) -> None:
    onnx.save(small, tmp_path / "small.onnx")
    wave = tmp_path / "out.vcd"
    command = [BRAID, "run", tmp_path / "small.onnx", "--target", "fpga-sim", "--random"]
    subprocess.run([*command, "--trace", wave], check=True, capture_output=True)
    text = wave.read_text()
    assert "$enddefinitions" in text and "s0_tvalid" in text
    done = subprocess.run(
        [*command[:3], "--random", "--trace", wave], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "nothing of the model is a circuit that is simulated" in done.stderr


def test_ops_are_put_elsewhere_by_hand(small: ModelProto) -> None:
    """A pooling on the CPU between two circuits on one device."""
    model = braid.compile(small, target="fpga-sim", pin=["op:pool=cpu"])
    x = image(small)
    np.testing.assert_array_equal(model(x), braid.compile(small)(x))
    shown = str(emit_model(small, "hls", CompileOptions(target="fpga-sim", pin=["op:pool=cpu"])))
    assert shown.count("braid_hls.design") == 2 and 'label = "pool"' not in shown


@pytest.mark.slow
def test_small_circuits_leave_more_of_the_part_to_others(tmp_path: Path) -> None:
    """A third of these tables is too few for the second convolution."""
    path = tmp_path / "small.toml"
    text = (Path(braid.__file__).parent / "targets/machines/fpga-sim.toml").read_text()
    path.write_text(text.replace("lut = 53_200", "lut = 4_500"))
    model = quantized(plain(1, 16, (12, 14)))
    shown = str(emit_model(model, "report", CompileOptions(target=str(path), pin=["op:pool=cpu"])))
    taken = re.findall(r"(?:look-up tables) +([\d,]+) of +4,500", shown)
    counts = [int(one.replace(",", "")) for one in taken]
    assert len(counts) == 3 and max(counts) > 1500 and sum(counts) <= 4500


def test_what_designs_do_not_have_stays_on_the_cpu_and_is_named() -> None:
    text = """func.func @main(%x: tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xf32> {
      %0 = braid.maximum %x, %x : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi8>
      %1 = braid.cast %0 : (tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xf32>
      %2 = braid.softmax %1 {dim = 1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
      func.return %2 : tensor<1x2x4x4xf32>
    }"""
    x = np.random.default_rng(0).integers(-128, 128, (1, 2, 4, 4)).astype(np.int8)
    model = braid.compile(text.encode(), target="fpga-sim")
    np.testing.assert_array_equal(model(x), braid.compile(text.encode())(x))
    assert "fpga:0" in model.devices
    with pytest.raises(BraidError, match=r"pinned to fpga:0[\s\S]*'braid.softmax' on an FPGA"):
        braid.compile(text.encode(), target="fpga-sim", pin=["op:softmax=fpga:0"])


def test_parts_without_a_plugin_say_so(small: ModelProto) -> None:
    with pytest.raises(BraidError, match="no device plugin 'fpga'"):
        braid.compile(small, target="fpga-u280")
    assert "module cluster_1" in str(
        emit_model(small, "verilog", CompileOptions(target="fpga-zynq7020"))
    )


MAXIMUM = b"""func.func @main(%x: tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xf32> {
  %0 = braid.maximum %x, %x : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi8>
  %1 = braid.cast %0 : (tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xf32>
  func.return %1 : tensor<1x2x4x4xf32>
}"""


def verilog_and_testbench() -> tuple[str, str, str]:
    """Both, and the name of the testbench's module."""
    verilog, bench = (
        str(emit_model(MAXIMUM, stage, CompileOptions(target="fpga-sim")))
        for stage in ("verilog", "testbench")
    )
    (name,) = re.findall(r"^module (\w+);", bench, re.MULTILINE)
    return verilog, bench, name


def test_modules_are_clean_and_a_testbench_passes(tmp_path: Path) -> None:
    """By the control module: it starts the design, and is done when the image has left."""
    verilog, bench, name = verilog_and_testbench()
    design = name.removesuffix("_testbench")
    for top in (design, f"{design}_control"):
        assert lint(top, verilog) == ""
    assert "PASSED in" in run_testbench(name, [verilog, bench], tmp_path)


@pytest.mark.slow
def test_a_testbench_finds_what_is_wrong(tmp_path: Path) -> None:
    verilog, bench, name = verilog_and_testbench()

    def other(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2], 16) ^ 1:x};"

    wrong = re.sub(r"(m0_beats\[3\] = 16'h)(\w+);", other, bench)
    assert "FAILED: 1 beats differ" in run_testbench(name, [verilog, wrong], tmp_path)


def test_circuits_share_nothing_with_each_other(tmp_path: Path) -> None:
    """A process may load those of several versions of Verilator."""
    (tmp_path / "circuit.so").write_bytes(shared_library("twice_of", TWICE, DRIVER, traced=True))
    command = ["nm", "-DC", "--defined-only", tmp_path / "circuit.so"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    kinds = dict(line.split(maxsplit=2)[:0:-1] for line in lines)
    assert kinds["twice"] == "T"
    # `u`: one of a process, whatever is loaded beside it.
    assert not [name for name, kind in kinds.items() if kind == "u" and "erilated" in name]


def test_circuits_are_kept_by_what_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And made again where they are damaged; without a cache they only take longer."""
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    built: list[str] = []

    def build(name: str, text: str, driver: str, options: Any, directory: Path) -> Path:
        built.append(name)
        (directory / "design.so").write_text(f"{text} {driver}")
        return directory / "design.so"

    monkeypatch.setattr(verilate, "_built", build)
    for count in (1, 1):
        assert shared_library("one", "text", "driver") == b"text driver" and len(built) == count
    for kept in default_cache().files(Kind.CIRCUIT):
        kept.write_bytes(kept.read_bytes()[:-1])
    assert shared_library("one", "text", "driver") == b"text driver" and len(built) == 2
    monkeypatch.setattr(verilate, "_compiler_version", lambda compiler: f"{compiler} 99")
    shared_library("one", "text", "driver")
    shared_library("one", "text", "driver", traced=True)
    assert len(built) == 4
    monkeypatch.setenv("BRAID_CACHE_DIR", "/proc/none")
    assert shared_library("one", "text", "driver") == b"text driver" and len(built) == 5


def test_precompiled_headers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second design on they are found, and they are made again if they are gone."""
    monkeypatch.setattr(verilate, "_headers", headers := verilate._Headers())
    monkeypatch.setattr(headers, "_READ", 1)
    macros = ("-DVM_TRACE=0", "-DVM_TRACE_VCD=0")
    made: list[set[str]] = []
    for name in ("read", "precompiled", "gone"):
        (tmp_path / name).mkdir()
        library = verilate._built("twice_of", TWICE, DRIVER, verilate.LINT, tmp_path / name)
        command = ["nm", "-DC", "--defined-only", library]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        made.append({line.split(maxsplit=1)[1] for line in done.stdout.splitlines()})
        if name == "precompiled":
            (_, header) = headers.arguments(macros)
            assert Path(f"{header}.gch").stat().st_size > 1_000_000
            shutil.rmtree(Path(header).parent)
            assert headers.arguments(macros) == []
    assert "T twice" in made[0]
    assert made[0] == made[1] == made[2]


def test_headers_that_cannot_be_precompiled_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the temporary directory had no space left."""
    compile_ = verilate._compile

    def without_space(arguments: list[str], output: Path) -> None:
        if output.suffix == ".gch":
            output.write_bytes(b"half")
            raise BraidError("no space left")
        compile_(arguments, output)

    monkeypatch.setattr(verilate, "_compile", without_space)
    monkeypatch.setattr(verilate, "_headers", headers := verilate._Headers())
    monkeypatch.setattr(headers, "_READ", 0)
    assert verilate._built("twice_of", TWICE, DRIVER, verilate.LINT, tmp_path).exists()
    (_, header) = headers.arguments(("-DVM_TRACE=0", "-DVM_TRACE_VCD=0"))
    assert not Path(f"{header}.gch").exists()


IN_THREADS = """
from threading import Thread
from braid.lowering.fpga.rtl.system_verilog import system_verilog
for _ in range(2):
    thread = Thread(target=system_verilog, args=("hw.module @wire(in %a : i8) {}",))
    thread.start()
    thread.join()
import pycde
assert pycde.circt.ir.Context.current == pycde.DefaultContext
"""


def test_a_thread_that_made_a_circuit_ends() -> None:
    """Importing `pycde` there would abort the process; later imports have all of it."""
    done = subprocess.run([sys.executable, "-c", IN_THREADS], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
