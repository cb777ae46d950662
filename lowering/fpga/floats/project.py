"""A design in f32 as a project for Vitis HLS, which also compiles without it."""

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from braid.lowering.fpga.convert.values import Array
from braid.lowering.fpga.cpp.check import check_rules
from braid.lowering.fpga.cpp.project import header, makefile_text, script_text, write_texts
from braid.lowering.fpga.floats.design import FloatDesign, FunctionPort, texts_of
from braid.lowering.fpga.floats.statements import HELPERS
from braid.support.errors import BraidError

RUN = "braid_hls_run_floats"
"""`void run(float *const *in, float *const *out)`: arguments and results of the function."""
_INCLUDES = ("#include <cmath>", "#include <hls_stream.h>", "")


def text_of(design: FloatDesign) -> str:
    """Return the file with the top function."""
    functions = "\n".join(texts_of(design))
    helpers = HELPERS.splitlines() if "imum(" in functions else []
    return "\n".join([*_INCLUDES, *helpers, functions, ""])


def driver_text(design: FloatDesign) -> str:
    """Return the driver that runs the function; an argument that several nests read is given to
    each.
    """
    given = [_pointer(port, f"in[{at}]") for at, port in design.inputs]
    given += [_pointer(port, f"out[{at}]") for at, port in enumerate(design.results)]
    return "\n".join(
        [
            f'#include "{design.name}.cpp"',
            "",
            f'extern "C" void {RUN}(float *const *in, float *const *out) {{',
            f"  {design.name}({', '.join(given)});",
            "}",
            "",
        ]
    )


def _pointer(port: FunctionPort, name: str) -> str:
    inner = "".join(f"[{size}]" for size in port.shape[1:])
    return f"(float (*){inner}){name}"


def write_float_project(
    design: FloatDesign, folder: Path, part: str, clock: float, *, reorders: bool
) -> None:
    """Write all files; `reorders` leaves the order of sums to the tool.

    Raises BraidError for a text that breaks a rule of synthesis.
    """
    text = text_of(design)
    check_rules(text)
    texts = {
        f"{design.name}.cpp": text,
        "driver.cpp": driver_text(design),
        "hls.tcl": script_text(design.name, part, clock, reorders=reorders),
        "Makefile": makefile_text(design.name),
        "include/hls_stream.h": header("hls_stream.h"),
    }
    write_texts(texts, folder)


def run_project(folder: Path, design: FloatDesign, given: Sequence[Array]) -> list[Array]:
    """Return the results of `make simulate` and the driver for arguments.

    Raises BraidError where the text does not compile.
    """
    command = ["make", "-s", "-C", str(folder), "simulate"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BraidError(f"the C++ of '{design.name}' does not compile: {done.stderr}")
    arrays = [np.ascontiguousarray(one, np.float32) for one in given]
    outputs = [np.zeros(port.shape, np.float32) for port in design.results]
    sides = [
        (ctypes.c_void_p * max(len(side), 1))(*(one.ctypes.data for one in side))
        for side in (arrays, outputs)
    ]
    ctypes.CDLL(str(folder / f"lib{design.name}.so"))[RUN](*sides)
    return outputs


def run_design(design: FloatDesign, given: Sequence[Array]) -> list[Array]:
    """Run the design in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="braid-hls-") as folder:
        write_float_project(design, Path(folder), "xcu280-fsvh2892-2L-e", 3.33, reorders=True)
        return run_project(Path(folder), design, given)
