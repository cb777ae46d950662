"""Weights that are read from memory, where they do not fit on the part."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

import braid
from braid.dialects.braid_hls.design import only_design
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.lowering.fpga.convert.design_of import design_of
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.cpp.check import broken_rules
from braid.lowering.fpga.cpp.design_text import design_text
from braid.lowering.fpga.cpp.simulate import CompiledDesign
from braid.lowering.fpga.design.streams import permutes_of, stages_of, weights_of
from braid.lowering.fpga.rtl import simulate
from braid.lowering.fpga.rtl.design_module import resources_of
from braid.lowering.fpga.rtl.simulate import Stalls, VerilatedDesign
from braid.lowering.fpga.rtl.verilate import lint
from braid.lowering.fpga.schedule.choices import Memory
from braid.lowering.fpga.schedule.select import (
    WITHOUT_LIMIT,
    Schedule,
    scheduled_design,
    select_schedule,
)
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.errors import BraidError
from braid.universe import make_context
from test.run.fpga.designs import IMAGES, check, images, parse, scheduled
from test.run.fpga.exported import plain, quantized
from test.run.fpga.test_devices import image, simulated, unpacked
from test.run.fpga.test_kernels import convolution, flattened, matmul
from test.run.fpga.test_unusual import Integers
from test.run.fpga.testbenches import run_testbench
from test.unit.runtime.test_run_model import run_model as run_model

KERNELS = {
    "convolution": (convolution(5, (4, 8), (14, 14)), 40),
    "depthwise, strides": (convolution(2, (4, 4), (9, 7), stride=2, groups=4), 6),
    "matmul": (matmul(3, 16, 16, 16), 1),
    "matmul with eight multipliers": (matmul(4, 8, 24, 10), 8),
    "flattened": (flattened(5, 4, (5, 4), 6), 8),
    "one channel": (convolution(6, (1, 1), (7, 5)), 2),
    "last burst is short": (matmul(7, 3, 37, 11), 2),
}
LATENCIES = (1, 12, 90)


def test_a_product_reads_its_weights() -> None:
    text, dsp = KERNELS["matmul with eight multipliers"]
    check(parse(text), dsp, memory=Memory(512, 30))


@pytest.mark.slow
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_read_their_weights(name: str, latency: int) -> None:
    """In the predicted cycles where the memory answers as it should, right in any case."""
    text, dsp = KERNELS[name]
    check(parse(text), dsp, memory=Memory(512, latency))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_in_cpp_read_their_weights(name: str) -> None:
    text, dsp = KERNELS[name]
    module = parse(text)
    converted, _ = scheduled(function_named(module, "main"), {}, dsp, Memory(512, 12))
    assert weights_of(converted.design)
    written = design_text(converted.design)
    assert "#pragma HLS INTERFACE m_axi port=memory0" in written
    assert not list(broken_rules(written))
    compiled = CompiledDesign(converted.design)
    for seed in (1, 2, 3):
        given, expected = images(module, converted, None, seed)
        found = compiled.run(given, [array.shape for array in expected], IMAGES)
        for output, array in zip(found, expected, strict=True):
            np.testing.assert_array_equal(output, array)


def test_a_transpose_beside_weights_in_cpp() -> None:
    """Both have memories, with different names."""
    made = Integers("1x4x5x6xi8")
    turned = made.op("transpose", ["%x0"], "1x6x4x5xi8", "{permutation = array<i64: 0, 3, 1, 2>}")
    module = parse(made.text(made.conv(turned, made.weights(4, 6, 3, 3))))
    converted, _ = scheduled(function_named(module, "main"), {}, 8, Memory(512, 12))
    assert weights_of(converted.design) and permutes_of(converted.design)
    written = design_text(converted.design)
    assert not list(broken_rules(written))
    given, expected = images(module, converted, None, 1)
    found = CompiledDesign(converted.design).run(given, [one.shape for one in expected], IMAGES)
    for output, array in zip(found, expected, strict=True):
        np.testing.assert_array_equal(output, array)


def limited(lut: int, memory: Memory | None, bits: int = WITHOUT_LIMIT) -> Schedule:
    function = function_named(parse(matmul(4, 8, 96, 64)), "main")
    budget = (4, WITHOUT_LIMIT, lut, WITHOUT_LIMIT, bits)
    return select_schedule(design_of(function, {}).design, budget, memory)


def test_weights_are_read_where_they_do_not_fit() -> None:
    free = limited(WITHOUT_LIMIT, Memory(64, 30))
    assert free.reads == (False,) and free.uses[4] == 0
    few = 1000
    with pytest.raises(BraidError, match="look-up tables at their smallest"):
        limited(few, None)
    read = limited(few, Memory(64, 30))
    assert read.reads == (True,) and read.cycles == free.cycles
    assert read.uses[4] == 32 and read.uses[2] <= few
    with pytest.raises(BraidError, match="at their smallest"):
        limited(few, Memory(64, 30), bits=31)
    # They would fit, with three of four multipliers.
    assert 3 * limited(1450, None).cycles == 4 * free.cycles
    assert limited(1450, Memory(64, 30)).cycles == free.cycles


def test_the_pass_chooses() -> None:
    module = parse(matmul(4, 8, 96, 64))
    options = "dsp=4 lut=1000 memory=64 memory_latency=30"
    passes = f"convert-braid-to-hls,select-hls-schedule{{{options}}},apply-hls-schedule"
    run_pipeline(make_context(), module, parse_pipeline(passes))
    (weights,) = weights_of(only_design(module))
    assert (weights.latency.value.data, weights.port.value.data) == (30, 32)


def test_a_port_limits_what_an_iteration_computes() -> None:
    """Eight multipliers at a port of 32 bits: an iteration reads no more than four bytes."""
    function = function_named(parse(matmul(4, 8, 96, 64)), "main")
    budget = (8, WITHOUT_LIMIT, 1050, WITHOUT_LIMIT, WITHOUT_LIMIT)
    wide = select_schedule(design_of(function, {}).design, budget, Memory(64, 30))
    narrow = select_schedule(design_of(function, {}).design, budget, Memory(32, 30))
    assert wide.reads == narrow.reads == (True,)
    assert narrow.cycles == 2 * wide.cycles == 8 * 96 * 64 // 4


def test_requests_that_break_rules_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text, dsp = KERNELS["matmul with eight multipliers"]
    module = parse(text)
    converted, _ = scheduled(function_named(module, "main"), {}, dsp, Memory(512, 12))
    given, expected = images(module, converted, None, 1)
    original = simulate.system_verilog

    def mutant(modules: str) -> str:
        changed, count = re.subn(r"(assign arlen = .*);", r"\1 + 8'h40;", original(modules))
        assert count == 1
        return changed

    monkeypatch.setattr(simulate, "system_verilog", mutant)
    with pytest.raises(BraidError, match="breaks a rule of AXI4"):
        VerilatedDesign(converted.design).run(given, [one.shape for one in expected], Stalls())


@pytest.fixture(scope="module")
def model() -> ModelProto:
    return quantized(plain(1, 16, (16,)))


@pytest.fixture(scope="module")
def tiny_part(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the simulated FPGA with few tables."""
    path = tmp_path_factory.mktemp("targets") / "tiny.toml"
    text = (Path(braid.__file__).parent / "targets/machines/fpga-sim.toml").read_text()
    path.write_text(text.replace("lut = 53_200", "lut = 2_000").replace("dsp = 220", "dsp = 20"))
    return str(path)


def test_a_model_that_does_not_fit(
    model: ModelProto, tiny_part: str, run_model: Path, tmp_path: Path
) -> None:
    """From Python, from C, in a testbench; in the cycles that were predicted."""
    compiled, host = braid.compile(model, target=tiny_part), braid.compile(model)
    for seed in range(3):
        x = image(model, seed)
        np.testing.assert_array_equal(compiled(x), host(x))
    predicted = compiled.device_seconds()["fpga:0"]
    assert compiled.launched_seconds()["fpga:0"] == pytest.approx(3 * predicted, abs=1e-8)
    compiled.save(tmp_path / "model.braid")
    host.save(tmp_path / "host.braid")
    printed = [
        subprocess.run([run_model, tmp_path / name], capture_output=True, text=True, check=True)
        for name in ("model.braid", "host.braid")
    ]
    assert printed[0].stdout == printed[1].stdout
    report = str(emit_model(model, "report", CompileOptions(target=tiny_part)))
    assert re.search(r"weights0 .* bytes, bursts of \d+, \d+ ahead", report)
    assert re.search(r"memory bits a cycle +\d+ of +336", report)
    verilog = str(emit_model(model, "verilog", CompileOptions(target=tiny_part)))
    (top,) = re.findall(r"module (\w+_control)", verilog)
    assert lint(top, verilog) == ""
    bench = str(emit_model(model, "testbench", CompileOptions(target=tiny_part)))
    assert "PASSED" in run_testbench(
        top.replace("_control", "_testbench"), [verilog, bench], tmp_path
    )


@pytest.mark.slow
def test_a_project_that_reads_weights(model: ModelProto, tiny_part: str, tmp_path: Path) -> None:
    project = unpacked(model, tmp_path, target=tiny_part)
    assert "m_axi" in (project / f"{project.name}.cpp").read_text()
    assert "PASSED" in simulated(project).stdout


@pytest.mark.slow
def test_a_stream_that_reads_weights(model: ModelProto, tiny_part: str) -> None:
    compiled, host = braid.compile(model, target=tiny_part), braid.compile(model)
    given = [image(model, seed) for seed in range(6)]
    for x, result in zip(given, compiled.stream(given), strict=True):
        np.testing.assert_array_equal(result, host(x))


def numbers(seed: int, *shape: int) -> str:
    values = np.random.default_rng(seed).integers(-128, 128, shape).tolist()
    kind = f"tensor<{'x'.join(map(str, shape))}xi8>"
    return f"braid.constant {{value = dense<{values}> : {kind}}} : {kind}"


PRODUCTS = f"""func.func @main(%x: tensor<4x96xi8>) -> tensor<4x10xi32> {{
  %w = {numbers(1, 96, 64)}
  %v = {numbers(2, 64, 64)}
  %u = {numbers(3, 64, 10)}
  %m = braid.constant {{value = dense<90> : tensor<1x1xi32>}} : tensor<1x1xi32>
  %s = braid.constant {{value = dense<16> : tensor<1x1xi32>}} : tensor<1x1xi32>
  %z = braid.constant {{value = dense<3> : tensor<1x1xi8>}} : tensor<1x1xi8>
  %p = braid.matmul %x, %w {{accumulator = i32}}
      : (tensor<4x96xi8>, tensor<96x64xi8>) -> tensor<4x64xi32>
  %q = braid.requantize %p, %m, %s, %z {{rounding = "half_even"}} : (tensor<4x64xi32>,
      tensor<1x1xi32>, tensor<1x1xi32>, tensor<1x1xi8>) -> tensor<4x64xi8>
  %a = braid.maximum %q, %q : (tensor<4x64xi8>, tensor<4x64xi8>) -> tensor<4x64xi8>
  %b = braid.matmul %a, %v {{accumulator = i32}}
      : (tensor<4x64xi8>, tensor<64x64xi8>) -> tensor<4x64xi32>
  %c = braid.requantize %b, %m, %s, %z {{rounding = "half_even"}} : (tensor<4x64xi32>,
      tensor<1x1xi32>, tensor<1x1xi32>, tensor<1x1xi8>) -> tensor<4x64xi8>
  %y = braid.matmul %c, %u {{accumulator = i32}}
      : (tensor<4x64xi8>, tensor<64x10xi8>) -> tensor<4x10xi32>
  func.return %y : tensor<4x10xi32>
}}"""
"""Two circuits where the maximum is the CPU's."""


def test_two_circuits_read_their_weights(tmp_path: Path) -> None:
    """Each its own, at once in a stream."""
    path = tmp_path / "tiny.toml"
    text = (Path(braid.__file__).parent / "targets/machines/fpga-sim.toml").read_text()
    path.write_text(text.replace("lut = 53_200", "lut = 1_900").replace("dsp = 220", "dsp = 12"))
    model, options = PRODUCTS.encode(), {"target": str(path), "pin": ["op:maximum=cpu"]}
    assert str(emit_model(model, "report", CompileOptions(**options))).count("weights0 ") == 2
    compiled, host = braid.compile(model, **options), braid.compile(model)
    rng = np.random.default_rng(0)
    given = [rng.integers(-128, 128, (4, 96), np.int8) for _ in range(4)]
    expected = [host(x) for x in given]
    assert np.std(expected[0]) > 0
    for results in (map(compiled, given), compiled.stream(given)):
        for result, correct in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, correct)


def test_reading_is_counted(model: ModelProto) -> None:
    """The port, its buffer and its counters."""
    text, dsp = KERNELS["convolution"]
    function = function_named(parse(text), "main")
    on_chip, _ = scheduled(function, {}, dsp)
    read, _ = scheduled(function, {}, dsp, Memory(512, 12))
    (weights,) = weights_of(read.design)
    assert resources_of(read.design).memory == weights.port.value.data == 512
    assert resources_of(on_chip.design).memory == 0
    kept, _ = scheduled_design(design_of(function, {}).design, (dsp, *[WITHOUT_LIMIT] * 4))
    assert not any(stage.weights for stage in stages_of(kept))
