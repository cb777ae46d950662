"""Resources of circuits: the estimate compared with Yosys's counts."""

import re
from dataclasses import replace

import pytest
from onnx import ModelProto

from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.rtl.design_module import design_modules, resources_of
from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire
from braid.lowering.fpga.rtl.resources import Resources, Storage, slices_of_product, storage_of
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from braid.lowering.fpga.rtl.yosys import synthesis
from braid.lowering.fpga.schedule.choices import Memory
from test.run.fpga.designs import parse, scheduled
from test.run.fpga.exported import plain, quantized
from test.run.fpga.test_cpp import MAXIMUM
from test.run.fpga.test_kernels import RESIDUAL, convolution, matmul
from test.run.fpga.test_moves import moved

DESIGNS = {
    "convolution and pooling": (convolution(1, (1, 2), (32, 32), pool=True), 64),
    "depthwise": (convolution(2, (4, 4), (9, 7), stride=2, groups=4), 6),
    "folded convolution": (convolution(5, (4, 8), (14, 14)), 40),
    "matmul": (matmul(3, 16, 16, 16), 1),
    "matmul with eight multipliers": (matmul(4, 8, 24, 10), 8),
    "pointwise": (convolution(7, (8, 16), (10, 10), (1, 1), pad=0), 32),
    "folded pointwise": (convolution(8, (16, 8), (8, 8), (1, 1), pad=0), 16),
    "residual": (RESIDUAL, 64),
    "strided": (convolution(9, (3, 4), (20, 20), stride=2), 30),
    "lines in block RAMs": (convolution(10, (4, 2), (6, 640)), 20),
    "long lines in block RAMs": (convolution(11, (1, 1), (5, 4096)), 12),
}
BY_ADDRESS = {
    "a memory read by address": (moved((1, 4, 48, 64), "0132"), 1),
    "a deep memory read by address": (moved((1, 8, 48, 48), "0132"), 1),
    "a transposed matrix": (moved((12, 32), "10"), 1),
    "addresses in tables": (moved((1, 24, 4, 14), "0231"), 1),
    "shorter tables": (moved((1, 14, 20, 8), "0213"), 1),
    "lanes of many words": (moved((1, 48, 4, 48), "0123", (1536, 6)), 1),
}
"""Memories of permutes: choices, tables of known addresses, block RAMs with registers."""
READING = {
    "matmul that reads weights": (matmul(4, 8, 24, 10), 8),
    "convolution that reads weights": (convolution(5, (4, 8), (14, 14)), 40),
}
"""Of a memory that answers after 12 cycles."""


# Measured: Yosys, synth_xilinx -family xc7, of memories that are read a cycle later.
MEMORIES = (
    (64, 8, 0, 12),
    (64, 64, 0, 88),
    (100, 16, 0, 48),
    (224, 8, 0, 48),
    (128, 32, 1, 0),
    (1024, 8, 1, 0),
    (640, 24, 2, 0),
    (224, 64, 2, 0),
    (1920, 24, 3, 0),
)


@pytest.mark.parametrize(("words", "bits", "half_blocks", "tables"), MEMORIES)
def test_memories(words: int, bits: int, half_blocks: int, tables: int) -> None:
    assert storage_of(words, bits, at_once=False) == Storage(half_blocks, tables)


# Measured: Yosys, synth_xilinx -family xc7, for signed operands of so many bits.
PRODUCTS = (
    ((4, 4), 0),
    ((5, 4), 1),
    ((2, 6), 0),
    ((2, 7), 1),
    ((18, 24), 1),
    ((18, 25), 1),
    ((18, 26), 2),
    ((19, 25), 2),
    ((19, 26), 4),
    ((42, 18), 2),
    ((43, 18), 3),
    ((43, 19), 6),
    ((60, 30), 8),
)


@pytest.mark.parametrize(("operands", "slices"), PRODUCTS)
def test_products(operands: tuple[int, int], slices: int) -> None:
    assert slices_of_product(*operands) == slices == slices_of_product(*reversed(operands))


def registered(module: HardwareModule, *wires: Wire) -> tuple[int, int]:
    """Look-up tables and flip-flops of a module with those words in registers."""
    for number, wire in enumerate(wires):
        module.output(f"y{number}", module.register(wire))
    return module.resources.lut, module.resources.ff


def test_known_and_repeated_bits_are_free() -> None:
    module = HardwareModule("m")
    x = module.input("x", 8)
    high = module.concat([module.constant(0, 4), x])
    assert registered(module, module.resize(x, 32), high) == (0, 8 + 8)


def test_low_bits_to_which_nothing_is_added_are_free() -> None:
    module = HardwareModule("m")
    x, y = module.input("x", 8), module.input("y", 8)
    high = module.concat([module.constant(0, 4), module.extract(y, 0, 4)])
    assert registered(module, module.apply("add", x, high)) == (4, 8)


def test_sums_of_short_numbers_are_short() -> None:
    module = HardwareModule("m")
    x, y = (module.resize(module.input(name, 5), 32) for name in "xy")
    assert registered(module, module.apply("add", x, y)) == (5 + 1, 6)


def test_a_known_choice_is_a_reset() -> None:
    module = HardwareModule("m")
    x, when = module.input("x", 8), module.input("when", 1)
    chosen = module.mux(when, module.constant(0, 8), x)
    assert registered(module, chosen) == (1, 8)
    module.output("other", chosen)
    assert module.resources.lut == 8


def test_tables_take_in_what_only_they_read() -> None:
    module = HardwareModule("m")
    a, b, c, d, e = (module.input(name, 1) for name in "abcde")
    both = module.apply("and", a, b)
    assert registered(module, module.apply("xor", both, module.apply("or", c, d, e))) == (1, 1)
    module.output("both", both)
    assert module.resources.lut == 2


def test_what_nobody_reads_is_free() -> None:
    module = HardwareModule("m")
    x = module.input("x", 8)
    total = module.register(module.apply("add", x, module.register(x)))
    assert module.resources == Resources()
    assert registered(module, module.extract(total, 0, 3)) == (3, 3 + 3 + 3)


def test_factors_wait_in_slices() -> None:
    module = HardwareModule("m")
    x, y, z = (module.register(module.input(name, 8)) for name in "xyz")
    made = [module.product(x, y, 16), module.product(x, z, 16)]
    assert registered(module, *made) == (0, 0)
    module.output("x", x)
    assert (module.resources.dsp, module.resources.ff) == (2, 8)


def test_factors_leave_registers_in_a_row() -> None:
    """Slices keep words that they read in registers, which then are tables."""
    module = HardwareModule("m")
    x, y = module.input("x", 8), module.register(module.input("y", 8))
    taps = [module.register(x)]
    for _ in range(2):
        taps.append(module.register(taps[-1]))
    for number, tap in enumerate(taps[:2]):
        module.output(f"product{number}", module.product(tap, y, 16))
    assert registered(module, module.apply("xor", taps[2], x)) == (8 + 8, 8)


def test_a_choice_that_is_known_is_a_wire() -> None:
    module = HardwareModule("m")
    x, y = module.input("x", 8), module.input("y", 8)
    known = module.register(module.register(module.constant(1, 1)))
    assert registered(module, module.mux(known, x, y)) == (0, 8)


def test_registers_in_a_row_are_tables() -> None:
    module = HardwareModule("m")
    assert registered(module, module.later(module.input("x", 8), 16)) == (8 * 2, 0)
    tapped = HardwareModule("m")
    x = tapped.later(tapped.input("x", 8), 1)
    assert registered(tapped, x, tapped.later(x, 1)) == (0, 8 * 3)


def test_block_rams_hold_the_register_behind_them() -> None:
    module = HardwareModule("m")
    read, write = module.input("read", 10), module.input("write", 10)
    data, enable = module.input("data", 32), module.input("enable", 1)
    word = module.memory(1024, read, write, data, enable)
    assert registered(module, word) == (0, 10)
    module.output("word", word)
    assert module.resources.ff == 32


def test_a_report() -> None:
    model: ModelProto = quantized(plain(1, 8, (3,)))
    text = str(emit_model(model, "report", CompileOptions(target="fpga-u280")))
    (interval, frames) = re.findall(r"(\d+) cycles from .* ([\d,]+) frames per second", text)[0]
    assert int(frames.replace(",", "")) == round(300e6 / int(interval))
    # Each channel is full at some time, or its depth would be less.
    channels = re.findall(r"^\S+ -> \S+ +(\d+) +\d+  ([ ▁-█]+)$", text, re.MULTILINE)
    assert len(channels) > 3 and all("█" in bars for _, bars in channels)
    assert "<- slowest" in text and re.search(r"DSP slices +\d+ of +9,024", text)


@pytest.mark.slow  # Yosys is compiled from WebAssembly at its first run, for more than a minute
def test_synthesis_by_yosys_stands_beside_the_estimate() -> None:
    text = str(emit_model(MAXIMUM, "synthesis", CompileOptions(target="fpga-zynq7020")))
    counts = re.findall(r"(look-up tables|flip-flops) +(\d+) estimated, +(\d+) by Yosys", text)
    assert len(counts) == 2
    for _, estimated, counted in counts:
        assert int(estimated) == pytest.approx(int(counted), rel=0.25)
    assert re.search(r"longest path +\d\.\d+ ns of 10 ns", text)


def test_known_factors_are_odd() -> None:
    """For even ones, synthesis took up to three slices for a product that one can make."""
    text = convolution(1, (2, 5), (6, 5), (1, 1), pad=0)
    design = scheduled(function_named(parse(text), "main"), {}, 64)[0].design
    modules = system_verilog(design_modules(design), ("hw.module(hw-aggregate-to-comb)",))
    factors = [int(one, 16) for one in re.findall(r"\* \d+'h([0-9A-F]+)", modules)]
    assert len(factors) > 8 and all(one % 2 for one in factors)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DESIGNS, *BY_ADDRESS, *READING])
def test_counts_beside_those_of_yosys(name: str) -> None:
    text, dsp = (DESIGNS | BY_ADDRESS | READING)[name]
    memory = Memory(512, 12) if name in READING else None
    design = scheduled(function_named(parse(text), "main"), {}, dsp, memory)[0].design
    made = synthesis(design.sym_name.data, design_modules(design))
    counted, found = made.resources, replace(resources_of(design), memory=0)
    assert ("block RAMs" in name or "memory read by address" in name) == (counted.bram36 > 0)
    print(f"{name}: {found}, Yosys {counted}, {made.path} ns")
    # Without wires, which take about as long: half of a cycle at 100 MHz.
    assert 0 < made.path <= 10 / 2
    assert found.dsp == counted.dsp
    assert found.bram36 == counted.bram36
    assert found.lut == pytest.approx(counted.lut, rel=0.25)
    assert found.ff == pytest.approx(counted.ff, rel=0.25)
