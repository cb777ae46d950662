"""The names under which braid is published, and the wording of messages about missing packages."""

from braid.support.errors import BraidError

COMPILER = "braid-compiler"
"""The distribution of the import package `braid`; on PyPI, `braid` is another project."""
RUNTIME = "braid-runtime"
"""The distribution that runs artifacts without the compiler."""


def install_command(extra: str = "") -> str:
    """Return the command that installs the compiler, with what one of its extras adds."""
    return f"pip install '{COMPILER}[{extra}]'" if extra else f"pip install {COMPILER}"


_EXTRAS = {"ortools": ("exact", "OR-Tools, by which exact searches are solved")}
"""Optional top-level packages: the extra that installs each, and a description."""


def missing_package(error: ModuleNotFoundError, what: str) -> BraidError | None:
    """Return the message that `what` needs a package of an extra; None for any other package."""
    found = _EXTRAS.get((error.name or "").partition(".")[0])
    if found is None:
        return None
    extra, package = found
    return BraidError(
        f"{what} needs {package}, which is not installed", hint=install_command(extra)
    )
