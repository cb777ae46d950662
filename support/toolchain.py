"""Versions of the tools that compile models: braid itself, and the packages that it uses."""

from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version

from braid.support.distribution import COMPILER


@cache
def toolchain() -> tuple[str, ...]:
    """Return the names and versions of the code generators, for digests."""
    return (*_bindings(), f"llvmlite {version('llvmlite')}")


@cache
def distribution_version(package: str) -> str:
    """Name and version of the distribution that an imported top-level package is from.

    Empty for one that is from none, such as a script.
    """
    names = packages_distributions().get(package, ())
    return " ".join(f"{name} {version(name)}" for name in sorted(set(names)))


@cache
def braid_version() -> str:
    """Return the version of braid, empty where it is not installed."""
    try:
        return version(COMPILER)
    except PackageNotFoundError:
        return ""


def _bindings() -> tuple[str, ...]:
    """Return the version of the upstream bindings; of a build without one, the time it was made."""
    try:
        return ("torch-mlir", version("torch-mlir"))
    except PackageNotFoundError:
        from braid.support.mlir_bindings import library_file, package

        return (package(), str(library_file().stat().st_mtime_ns))
