"""What the object file of a kernel depends on."""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.support.mlir_bindings import PACKAGE, ir
from braid.targets.machines.machine import Machine


def cache_key(text: str, machine: Machine) -> str:
    """Digest of a kernel's text and of everything that turns it into an object."""
    parts = (text, *_toolchain(), machine.triple, machine.cpu, machine.features)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _toolchain() -> tuple[str, ...]:
    return (PACKAGE, _bindings_version(), version("llvmlite"), ",".join(LLVM_PASSES))


def _bindings_version() -> str:
    """Version of the upstream bindings; of a build without one, the time it was made."""
    try:
        return version(PACKAGE.replace("_", "-"))
    except PackageNotFoundError:
        return str(Path(ir.__file__).stat().st_mtime_ns)
