"""Functions in f32 as HLS C++, compiled by the C++ compiler, beside the interpreter."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from benchmarks.fpga.reader import read_design
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.interpreter.interpret import interpret
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.settings import write_settings
from braid.frontends.onnx import import_onnx
from braid.lowering.fpga.convert.design_of import known_values
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.cpp.check import broken_rules
from braid.lowering.fpga.floats.nodes import graph_of
from braid.lowering.fpga.floats.project import run_design, run_project, text_of
from braid.lowering.fpga.floats.select import Selected, select_orders
from braid.lowering.fpga.operators import vitis_operators
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.solvers.hls.estimate import estimate
from braid.support.errors import BraidError, UnsupportedError
from braid.universe import make_context
from test.run.fpga.designs import parse, random_like
from test.run.fpga.exported import separable

CONV = """{strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
    pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64}"""
POOL = """{kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>,
    dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>}"""


def grouped(groups: int) -> str:
    """Return the attributes of a convolution in groups."""
    return CONV.replace("groups = 1", f"groups = {groups}")


def function(arguments: dict[str, str], *lines: str, results: dict[str, str]) -> str:
    """Types are written as shapes, `4x8`."""
    given = ", ".join(f"%{name}: tensor<{shape}xf32>" for name, shape in arguments.items())
    types = ", ".join(f"tensor<{shape}xf32>" for shape in results.values())
    names = ", ".join(f"%{name}" for name in results)
    body = "\n".join(lines)
    return f"func.func @main({given}) -> ({types}) {{\n{body}\nfunc.return {names} : {types}\n}}"


def op(result: str, name: str, operands: dict[str, str], shape: str, attributes: str = "") -> str:
    """Return the line `%result = braid.name %operands …`."""
    names = ", ".join(f"%{one}" for one in operands)
    types = ", ".join(f"tensor<{one}xf32>" for one in operands.values())
    return f"%{result} = braid.{name} {names} {attributes} : ({types}) -> tensor<{shape}xf32>"


def number(name: str, value: float, shape: str = "1x1") -> str:
    kind = f"tensor<{shape}xf32>"
    return f"%{name} = braid.constant {{value = dense<{value}> : {kind}}} : {kind}"


WEIGHTS = str(np.random.default_rng(1).normal(size=(3, 2, 3, 3)).round(3).tolist())
KERNELS = {
    "product and sum": function(
        {"a": "14x23", "b": "23x19", "c": "14x19"},
        op("p", "matmul", {"a": "14x23", "b": "23x19"}, "14x19"),
        number("k", 0.1),
        op("q", "mul", {"p": "14x19", "k": "1x1"}, "14x19"),
        op("y", "sub", {"q": "14x19", "c": "14x19"}, "14x19"),
        results={"y": "14x19"},
    ),
    "chain": function(
        {"a": "12x20", "b": "20x30", "c": "30x16"},
        op("t", "matmul", {"a": "12x20", "b": "20x30"}, "12x30"),
        op("y", "matmul", {"t": "12x30", "c": "30x16"}, "12x16"),
        results={"y": "12x16"},
    ),
    "product of products": function(
        {"a": "30x20", "b": "20x19", "c": "19x22", "d": "22x42"},
        op("t", "matmul", {"a": "30x20", "b": "20x19"}, "30x19"),
        op("u", "matmul", {"c": "19x22", "d": "22x42"}, "19x42"),
        op("y", "matmul", {"t": "30x19", "u": "19x42"}, "30x42"),
        results={"y": "30x42"},
    ),
    "groups": function(
        {"x": "1x4x6x5", "w": "6x2x3x3"},
        op(
            "y",
            "conv",
            {"x": "1x4x6x5", "w": "6x2x3x3"},
            "1x6x6x5",
            grouped(2),
        ),
        results={"y": "1x6x6x5"},
    ),
    "groups between": function(
        {"x": "2x6x5x5", "w": "6x2x3x3", "v": "4x3x1x1"},
        op(
            "t",
            "conv",
            {"x": "2x6x5x5", "w": "6x2x3x3"},
            "2x6x5x5",
            grouped(3),
        ),
        op("r", "maximum", {"t": "2x6x5x5", "x": "2x6x5x5"}, "2x6x5x5"),
        op(
            "y",
            "conv",
            {"r": "2x6x5x5", "v": "4x3x1x1"},
            "2x4x7x7",
            grouped(2),
        ),
        results={"y": "2x4x7x7"},
    ),
    "flattened": function(
        {"x": "2x3x4x5", "u": "2x3x4x5", "w": "60x7"},
        op("p", "mul", {"x": "2x3x4x5", "u": "2x3x4x5"}, "2x3x4x5"),
        op("f", "reshape", {"p": "2x3x4x5"}, "2x60"),
        op("y", "matmul", {"f": "2x60", "w": "60x7"}, "2x7"),
        op("z", "reshape", {"y": "2x7"}, "1x14x1"),
        results={"z": "1x14x1", "f": "2x60"},
    ),
    "reshaped argument": function(
        {"x": "6x4"},
        op("y", "reshape", {"x": "6x4"}, "2x12"),
        results={"y": "2x12"},
    ),
    "two results": function(
        {"a": "31x37", "x": "37x1", "z": "31x1"},
        op("y", "matmul", {"a": "31x37", "x": "37x1"}, "31x1"),
        op("b", "transpose", {"a": "31x37"}, "37x31", "{permutation = array<i64: 1, 0>}"),
        op("w", "matmul", {"b": "37x31", "z": "31x1"}, "37x1"),
        results={"y": "31x1", "w": "37x1"},
    ),
    "read twice": function(
        {"a": "10x12", "b": "12x10"},
        op("t", "matmul", {"a": "10x12", "b": "12x10"}, "10x10"),
        op("u", "matmul", {"t": "10x10", "a": "10x12"}, "10x12"),
        op("v", "transpose", {"t": "10x10"}, "10x10", "{permutation = array<i64: 1, 0>}"),
        op("w", "exp", {"v": "10x10"}, "10x10"),
        results={"u": "10x12", "w": "10x10", "t": "10x10"},
    ),
    "convolution and pooling": function(
        {"x": "1x2x9x8"},
        f"%w = braid.constant {{value = dense<{WEIGHTS}> : tensor<3x2x3x3xf32>}}"
        " : tensor<3x2x3x3xf32>",
        op("c", "conv", {"x": "1x2x9x8", "w": "3x2x3x3"}, "1x3x9x8", CONV),
        number("z", 0.0, "1x1x1x1"),
        op("r", "maximum", {"c": "1x3x9x8", "z": "1x1x1x1"}, "1x3x9x8"),
        op("y", "pool", {"r": "1x3x9x8"}, "1x3x4x4", POOL),
        results={"y": "1x3x4x4"},
    ),
    "softmax": function(
        {"x": "5x13"},
        op("y", "softmax", {"x": "5x13"}, "5x13", "{dim = 1 : i64}"),
        results={"y": "5x13"},
    ),
    "one number": function(
        {"a": "1x17", "b": "17x1"},
        op("y", "matmul", {"a": "1x17", "b": "17x1"}, "1x1"),
        results={"y": "1x1"},
    ),
    "batch": function(
        {"a": "3x4x5", "b": "3x5x7"},
        op("y", "matmul", {"a": "3x4x5", "b": "3x5x7"}, "3x4x7"),
        results={"y": "3x4x7"},
    ),
}
READABLE = ("product and sum", "chain", "two results", "one number", "batch")
"""The benchmark's reader knows all of its C++."""


def selected(main: FuncOp, dsps: int) -> Selected:
    graph = graph_of(main, known_values(main, {}))
    return select_orders(graph, "top", vitis_operators(), dsps)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_those_of_the_interpreter(name: str) -> None:
    module = parse(KERNELS[name])
    main = function_named(module, "main")
    cycles: list[int] = []
    for dsps in (24, 90):
        chosen = selected(main, dsps)
        assert chosen.found.resources.dsps <= dsps
        assert chosen.lower_bound <= chosen.found.cycles
        cycles.append(chosen.found.cycles)
        assert not list(broken_rules(text_of(chosen.design)))
        for seed in (1, 2, 3):
            rng = np.random.default_rng(seed)
            given = [random_like(argument, rng) for argument in main.body.block.args]
            expected = interpret(module, given)
            for output, array in zip(run_design(chosen.design, given), expected, strict=True):
                spread = float(np.abs(array).max())
                np.testing.assert_allclose(output, array, rtol=0, atol=1e-5 * spread)
    assert cycles[1] <= cycles[0]


@pytest.mark.parametrize("name", READABLE)
def test_the_text_is_estimated_as_the_design(name: str, tmp_path: Path) -> None:
    """By the reader of published designs, which sees only the text."""
    chosen = selected(function_named(parse(KERNELS[name]), "main"), 60)
    (tmp_path / "top.cpp").write_text(text_of(chosen.design))
    found = estimate(read_design(tmp_path / "top.cpp"), vitis_operators())
    assert (found.cycles, found.resources.dsps) == (
        chosen.found.cycles,
        chosen.found.resources.dsps,
    )


def test_nests_of_a_chain_stream_to_each_other() -> None:
    """The second product begins long before the first one has ended."""
    chosen = selected(function_named(parse(KERNELS["chain"]), "main"), 60)
    assert all(port.is_stream for port in chosen.design.between)
    first, second = chosen.found.ends.ends
    assert second - first < first // 4


def test_two_streams_that_meet() -> None:
    """One splits a loop in which the other one is read."""
    main = function_named(parse(KERNELS["product of products"]), "main")
    operators = vitis_operators()
    operators = replace(operators, latencies={**operators.latencies, "slow_add": 0})
    chosen = select_orders(graph_of(main, known_values(main, {})), "top", operators, 90)
    assert all(port.is_stream for port in chosen.design.between)
    slowest = max(
        (nest.iterations - 1) * plan[0].interval + plan[0].depth
        for process, plan in zip(
            chosen.design.nests().processes, chosen.found.schedules, strict=True
        )
        for nest in process.nests
    )
    assert chosen.found.cycles < 1.25 * slowest


def test_a_project(tmp_path: Path) -> None:
    module = parse(KERNELS["chain"])
    run_pipeline(
        make_context(), module, parse_pipeline(f"lower-floats-to-cpp{{output={tmp_path} dsp=60}}")
    )
    assert {one.name for one in tmp_path.iterdir()} == {
        "Makefile",
        "driver.cpp",
        "hls.tcl",
        "include",
        "top.cpp",
    }
    # Sums are written term by term, and become trees only then.
    assert "-unsafe_math_optimizations" in (tmp_path / "hls.tcl").read_text()
    main = function_named(module, "main")
    rng = np.random.default_rng(1)
    given = [random_like(argument, rng) for argument in main.body.block.args]
    (expected,) = interpret(module, given)
    (output,) = run_project(tmp_path, selected(main, 60).design, given)
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_strict_sums_are_as_written(tmp_path: Path) -> None:
    passes = parse_pipeline(f"lower-floats-to-cpp{{output={tmp_path} dsp=60}}")
    module = parse(KERNELS["chain"])
    write_settings(module, {"numerics": "strict"})
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, passes)
    assert "math_optimizations" not in (tmp_path / "hls.tcl").read_text()
    assert any("added one after the other" in remark.message for remark in remarks)


REFUSED = {
    "a value of type tensor<2x2xi8>": "func.func @main(%x: tensor<2x2xi8>) -> tensor<2x2xi8> "
    "{ func.return %x : tensor<2x2xi8> }",
    "a reshape of [2, 3] to [3, 2]": "func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> "
    "{ %y = braid.reshape %x : (tensor<2x3xf32>) -> tensor<3x2xf32> "
    "func.return %y : tensor<3x2xf32> }",
    "a result of type": "func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> "
    "{ func.return %x : tensor<2x2xf32> }",
    "a value of type tensor<?x2xf32>": "func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> "
    "{ func.return %x : tensor<?x2xf32> }",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message: str) -> None:
    main = function_named(parse(REFUSED[message]), "main")
    with pytest.raises(UnsupportedError) as error:
        graph_of(main, known_values(main, {}))
    assert message in error.value.message


def test_too_few_dsps() -> None:
    with pytest.raises(BraidError, match="have at most 2 DSPs"):
        selected(function_named(parse(KERNELS["chain"]), "main"), 2)


def test_a_model_from_onnx() -> None:
    """Its weights are arrays behind the arguments."""
    imported = import_onnx(separable(3, 8))
    run_pipeline(make_context(), imported.module, parse_pipeline("simplify"))
    main = function_named(imported.module, "main")
    graph = graph_of(main, known_values(main, {}, needs_all=False))
    chosen = select_orders(graph, "top", vitis_operators(), 200)
    weights = [
        imported.parameters[value.owner.key.data]
        for value, _ in graph.inputs
        if isinstance(value, SSAValue) and isinstance(value.owner, ParameterOp)
    ]
    assert weights
    x = random_like(main.body.block.args[0], np.random.default_rng(1))
    (expected,) = interpret(imported.module, [x], parameters=imported.parameters)
    (output,) = run_design(chosen.design, [x, *weights])
    np.testing.assert_allclose(output, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
