"""PTX to machine code and back to text, by NVIDIA's tools, which need no GPU."""

import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from braid.support.distribution import install_command
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, ObjectCache, default_cache

_HEADER = re.compile(rb"^(?:\.version|\.target|\.address_size) .*\n", re.MULTILINE)
_VERSION = re.compile(rb"^\.version (\d+)\.(\d+)$", re.MULTILINE)
_RESOURCES = re.compile(r"Function properties for (\S+)|Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_WARNING = re.compile(r"\b[Ww]arning\b|serializ")
_USED = re.compile(r"Used (\d+) registers")


@dataclass(frozen=True)
class Resources:
    """The resources of a thread of an entry: registers, and bytes of spilled memory."""

    registers: int
    spilled_bytes: int


@dataclass(frozen=True)
class MachineCode:
    """A cubin, the resources of its entries, and the warnings of the assembler."""

    code: bytes
    resources: dict[str, Resources]
    warnings: tuple[str, ...] = ()


def joined_ptx(modules: Sequence[bytes]) -> bytes:
    """Join modules for one architecture into one, with the header of the latest version of PTX."""
    latest = max(modules, key=_version)
    others = (_HEADER.sub(b"", module) for module in modules if module is not latest)
    return b"\n".join([latest, *others])


def _version(module: bytes) -> tuple[int, int]:
    found = _VERSION.search(module)
    return (int(found[1]), int(found[2])) if found is not None else (0, 0)


_INSTALL = install_command("gpu-check")
_OTHER = f"another one is searched by CUDA_HOME, PATH, or {_INSTALL}, in this order"


def find_tool(name: str) -> str:
    """Return the path of `ptxas` or `nvdisasm`: of CUDA_HOME, PATH, or NVIDIA's packages of PyPI.

    Raises BraidError if there is none.
    """
    home = os.environ.get("CUDA_HOME")
    places = [Path(home) / "bin" / name] if home else []
    found = shutil.which(name)
    places += [Path(found)] if found else []
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    places += sorted(packages.glob(f"*/bin/{name}"), reverse=True)
    for place in places:
        if place.is_file():
            return str(place)
    raise BraidError(
        f"'{name}' of CUDA is not found",
        hint=f"{_INSTALL}, or set CUDA_HOME to where CUDA is",
    )


def assemble(ptx: bytes, architecture: str) -> MachineCode:
    """Return the machine code for `architecture`, such as `sm_80`.

    Raises BraidError where there is no assembler, or it rejects the code.
    """
    with tempfile.TemporaryDirectory(prefix="braid-ptx-") as name:
        source, output = Path(name) / "kernels.ptx", Path(name) / "kernels.cubin"
        source.write_bytes(ptx)
        tool = find_tool("ptxas")
        log = _run([tool, "-v", "-O3", f"-arch={architecture}", str(source), "-o", str(output)])
        warnings = tuple(line for line in log.splitlines() if _WARNING.search(line))
        if not output.is_file():
            raise BraidError(f"'{tool}' ended well, but has written no machine code", hint=_OTHER)
        return MachineCode(output.read_bytes(), _resources(log), warnings)


def cubin_of(ptx: bytes, architecture: str, cache: ObjectCache | None = None) -> bytes:
    """Return the code that `assemble` makes, through the cache, by the PTX and the assembler's
    version.

    Raises as that does.
    """
    version = _run([find_tool("ptxas"), "--version"])
    parts = (ptx, architecture.encode(), version.encode())
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()
    cache = cache or default_cache()
    found = cache.get(Kind.OBJECT, key)
    if found is None:
        found = assemble(ptx, architecture).code
        cache.put(Kind.OBJECT, key, found)
    return found


def disassemble(cubin: bytes) -> str:
    """Return the machine code as text (SASS). Raises BraidError where there is no disassembler."""
    with tempfile.TemporaryDirectory(prefix="braid-ptx-") as name:
        file = Path(name) / "kernels.cubin"
        file.write_bytes(cubin)
        return _run([find_tool("nvdisasm"), "-c", str(file)])


def _run(command: Sequence[str]) -> str:
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise BraidError(f"'{command[0]}' cannot be run: {error.strerror}", hint=_OTHER) from error
    if result.returncode != 0:
        lines = (result.stderr + result.stdout).splitlines()
        tool, first = (
            Path(command[0]).name,
            next(iter(lines), f"no message, exit status {result.returncode}"),
        )
        raise BraidError(f"'{tool}' rejects the code: {first}")
    return result.stdout + result.stderr


def _resources(log: str) -> dict[str, Resources]:
    """Return the resources that the assembler reports in its verbose mode."""
    found: dict[str, Resources] = {}
    entry, spilled = "", 0
    for line in log.splitlines():
        if (named := _RESOURCES.search(line)) is not None:
            entry = named[1] or named[2]
        elif (spills := _SPILLS.search(line)) is not None:
            spilled = int(spills[2]) + int(spills[3])
        elif (used := _USED.search(line)) is not None:
            found[entry] = Resources(int(used[1]), spilled)
    return found
