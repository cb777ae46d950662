"""Object files on disk, by the content of what they were compiled from."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile

from braid.analysis.cache_directory import cache_directory
from braid.lowering.common.mlir_bindings import PACKAGE, ir
from braid.lowering.cpu.llvm_passes import LLVM_PASSES
from braid.lowering.cpu.target_machine import TargetMachineSpec


@dataclass(frozen=True)
class ObjectCache:
    """A directory of object files, shared by any number of processes.

    Entries appear whole or not at all, and are never changed. A directory that cannot be
    written only costs the compilations it would have saved.
    """

    directory: Path

    def get(self, key: str) -> bytes | None:
        """The object file under `key`, if there is one."""
        try:
            return self._path(key).read_bytes()
        except OSError:
            return None

    def put(self, key: str, object_code: bytes) -> None:
        """Keeps an object file."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
                temporary = Path(file.name)
                file.write(object_code)
            temporary.replace(path)
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key[2:]}.o"


def default_cache() -> ObjectCache:
    """The cache in `$BRAID_CACHE_DIR`, or in the user's cache directory."""
    return ObjectCache(cache_directory() / "objects")


def cache_key(text: str, machine: TargetMachineSpec) -> str:
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
