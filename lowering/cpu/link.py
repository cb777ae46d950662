"""From object files to a shared object, by the system's C compiler."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from braid.errors import BraidError

_COMPILERS = ("cc", "gcc", "clang")


def link_shared_object(objects: Sequence[bytes]) -> bytes:
    """Link relocatable objects to an ELF shared object.

    The compiler is the environment's `CC`, or else the first of cc, gcc and clang that is there.

    Raises:
        BraidError: there is no C compiler, or it cannot link the objects.

    """
    return _link(objects, ["-shared", "-Wl,-z,noexecstack", "-Wl,-z,defs"], ["-lm"])


def link_relocatable(objects: Sequence[bytes]) -> bytes:
    """Join relocatable objects in one; raises as `link_shared_object` does."""
    return _link(objects, ["-r", "-nostdlib"], [])


def _link(objects: Sequence[bytes], flags: Sequence[str], libraries: Sequence[str]) -> bytes:
    compiler = _compiler()
    with tempfile.TemporaryDirectory(prefix="braid-link-") as name:
        directory = Path(name)
        files = [directory / f"{index}.o" for index in range(len(objects))]
        for file, data in zip(files, objects, strict=True):
            file.write_bytes(data)
        # A response file: a large model has more objects than a command line takes.
        response = directory / "objects"
        response.write_text("\n".join(shlex.quote(str(file)) for file in files))
        output = directory / "output"
        command = [*compiler, *flags, f"@{response}", *libraries, "-o", str(output)]
        _run(command)
        return output.read_bytes()


def _run(command: Sequence[str]) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BraidError(
            f"cannot run the C compiler '{command[0]}': {error.strerror}",
            hint="set the environment variable CC to a C compiler",
        ) from error
    if result.returncode != 0:
        first_line = next(iter(result.stderr.splitlines()), "no message")
        raise BraidError(f"the C compiler '{command[0]}' cannot link the model: {first_line}")


def _compiler() -> list[str]:
    chosen = shlex.split(os.environ.get("CC", ""))
    if chosen:
        return chosen
    for name in _COMPILERS:
        if (path := shutil.which(name)) is not None:
            return [path]
    raise BraidError(
        f"an artifact needs a C compiler to link it; looked for {', '.join(_COMPILERS)}",
        hint="install one, or set the environment variable CC",
    )
