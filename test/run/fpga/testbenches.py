"""Runs a testbench in SystemVerilog by Verilator, as a user would with a simulator."""

import os
import subprocess
from pathlib import Path

from braid.lowering.fpga.rtl.verilate import runtime_objects, verilator, verilator_root


def run_testbench(top: str, texts: list[str], directory: Path) -> str:
    """Return the output of the testbench."""
    source = directory / f"{top}.sv"
    source.write_text("\n".join(texts), encoding="utf-8")
    options = ["--cc", "--main", "--timing", "--top-module", top, "--Mdir", "code"]
    done = verilator([*options, "-Wno-fatal", "-Wno-lint", str(source)], directory)
    assert done.returncode == 0, done.stderr
    # As in `verilate`: one file, and Verilator's own code from the cache.
    unit = "".join(f'#include "{part}"\n' for part in sorted((directory / "code").glob("*.cpp")))
    (directory / "all.cpp").write_text(unit, encoding="utf-8")
    objects = runtime_objects(directory, ("verilated", "verilated_threads", "verilated_timing"))
    include = verilator_root() / "include"
    paths = [f"-I{path}" for path in (directory / "code", include, include / "vltstd")]
    options = ["-std=c++20", "-O0", "-w", "-DVM_TRACE=0", "-DVL_TIME_CONTEXT", "-pthread"]
    program = directory / "testbench"
    built = subprocess.run(
        [
            *(os.environ.get("CXX", "c++"), *options, *paths),
            *(str(directory / "all.cpp"), *objects, "-o", str(program)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[:2000]
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout
