"""Designs as HLS C++, compiled by the C++ compiler: bit-exact to the interpreter."""

import re

import numpy as np
import pytest

from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.lowering.fpga.convert.design_of import design_of
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.cpp.check import broken_rules
from braid.lowering.fpga.cpp.design_text import design_text
from braid.lowering.fpga.cpp.simulate import CompiledDesign
from braid.lowering.fpga.design.streams import channels_of, network_of
from braid.solvers.streams import fewest_depths
from test.run.fpga.designs import IMAGES, images, parse, scheduled
from test.run.fpga.test_kernels import JOINED, MEAN, RESIDUAL, convolution, flattened, matmul

KERNELS = {
    "convolution and pooling": (convolution(1, (1, 2), (12, 12), pool=True), (20, 64)),
    "depthwise, strides": (convolution(2, (4, 4), (9, 7), stride=2, groups=4), (6,)),
    "dilations": (convolution(3, (2, 4), (11, 9), dilation=2, pad=2), (9, 50)),
    "matmul": (matmul(3, 16, 16, 16), (1, 40)),
    "residual": (RESIDUAL, (7, 64)),
    "joined": (JOINED, (64,)),
    "mean": (MEAN, (1,)),
    "flattened": (flattened(5, 4, (5, 4), 6), (1, 8, 24)),
}

MAXIMUM = b"""func.func @main(%x: tensor<1x2x4x4xi16>) -> tensor<1x2x4x4xf32> {
  %0 = braid.maximum %x, %x : (tensor<1x2x4x4xi16>, tensor<1x2x4x4xi16>) -> tensor<1x2x4x4xi16>
  %1 = braid.cast %0 : (tensor<1x2x4x4xi16>) -> tensor<1x2x4x4xf32>
  func.return %1 : tensor<1x2x4x4xf32>
}"""


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_bit_exact(name: str) -> None:
    text, budgets = KERNELS[name]
    module = parse(text)
    for dsp in budgets:
        converted, _ = scheduled(function_named(module, "main"), {}, dsp)
        compiled = CompiledDesign(converted.design)
        for seed in (1, 2, 3):
            given, expected = images(module, converted, None, seed)
            for output, array in zip(
                compiled.run(given, [array.shape for array in expected], IMAGES),
                expected,
                strict=True,
            ):
                np.testing.assert_array_equal(output, array)


def test_streams_have_the_depths_that_were_chosen() -> None:
    design = scheduled(function_named(parse(RESIDUAL), "main"), {}, 64)[0].design
    depths = fewest_depths(network_of(design)).depths
    for channel, depth in zip(channels_of(design), depths, strict=True):
        channel.attributes["depth"] = type(channel.depth)(depth, channel.depth.type)
    written = re.findall(r"#pragma HLS STREAM variable=\w+ depth=(\d+)", design_text(design))
    assert tuple(map(int, written)) == depths


MUTANTS = {
    "a second consumer": (r"  (sink0\(\w+, m0\);)", r"  \1 \1", "2 consumers"),
    "a second producer": (r"  (source0\(s0, .*\);)", r"  \1 \1", "2 producers"),
    "no producer": (r"  source0\(s0, .*\);", "", "no producer"),
    "a loop that may go on": (r"for \(int it = 0; it < \d+; it\+\+\)", "while (true)", "bounds"),
    "a bound that is not known": (r"it < \d+", "it < position", "bounds"),
    "a changed counter": (r"position\+\+;", "position++; it++;", "bounds"),
    "a second exit": (r"position\+\+;", "position++; if (position > 3) break;", "second exit"),
    "an early return": (r"position\+\+;", "position++; return;", "not the end"),
    "recursion": (r"position\+\+;", "stage0(in0, out0); position++;", "calls itself"),
    "allocation": (r"position\+\+;", "position++; int *more = new int[3];", "allocated"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_rules_of_synthesis(name: str) -> None:
    text = design_text(design_of(function_named(parse(RESIDUAL), "main"), {}).design)
    assert not list(broken_rules(text))
    pattern, replacement, expected = MUTANTS[name]
    mutant, count = re.subn(pattern, replacement, text, count=1)
    assert count == 1
    assert any(expected in rule for rule in broken_rules(mutant)), list(broken_rules(mutant))


def test_braid_compile_shows_the_text() -> None:
    text = str(emit_model(MAXIMUM, "hls-cpp", CompileOptions(target="fpga-zynq7020")))
    assert 'extern "C" void cluster_' in text
    assert not list(broken_rules(text))
