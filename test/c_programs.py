"""C programs and plugins that tests build beside the runtime."""

import shutil
import subprocess
from pathlib import Path

import pytest

from braid.runtime.native_abi import find_headers, find_library

PLUGIN = ("-shared", "-fPIC")


def build(output: Path, *sources: str | Path, flags: tuple[str, ...] = ()) -> Path:
    """Compiles and links `sources` to `output`, with the runtime's headers; skips without `cc`."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{find_headers()}"]
    subprocess.run([compiler, *strict, *flags, *sources, "-o", output], check=True)
    return output


def with_runtime() -> tuple[str, ...]:
    """Return the arguments that link a program to the runtime."""
    library = find_library()
    return (str(library), f"-Wl,-rpath,{library.parent}", "-lm")
