"""The names under which braid is published, and how messages say what to install."""

COMPILER = "braid-compiler"
"""The distribution of the import package `braid`; on PyPI, `braid` is another project."""
RUNTIME = "braid-runtime"
"""The distribution that runs artifacts without the compiler."""


def install_command(extra: str = "") -> str:
    """Return the command that installs the compiler, with what one of its extras adds."""
    return f"pip install '{COMPILER}[{extra}]'" if extra else f"pip install {COMPILER}"
