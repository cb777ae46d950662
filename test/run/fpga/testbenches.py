"""Runs a testbench in SystemVerilog by Verilator, as a user would with a simulator."""

import os
import subprocess
from pathlib import Path

from braid.lowering.fpga.rtl.verilate import verilator, verilator_root


def run_testbench(top: str, texts: list[str], directory: Path) -> str:
    """What it prints."""
    source = directory / f"{top}.sv"
    source.write_text("\n".join(texts), encoding="utf-8")
    options = ["--cc", "--main", "--timing", "--top-module", top, "--Mdir", "code"]
    done = verilator([*options, "-Wno-fatal", "-Wno-lint", str(source)], directory)
    assert done.returncode == 0, done.stderr
    include = verilator_root() / "include"
    parts = sorted((directory / "code").glob("*.cpp"))
    parts += [include / f"verilated{kind}.cpp" for kind in ("", "_threads", "_timing")]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-w", "-DVM_TRACE=0"]
    paths = [f"-I{path}" for path in (directory / "code", include, include / "vltstd")]
    program = directory / "testbench"
    built = subprocess.run(
        [*command, *paths, *map(str, parts), "-pthread", "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[:2000]
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout
