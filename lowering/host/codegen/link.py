"""From object files to a shared object, by the system's C compiler."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from braid.support.errors import BraidError
from braid.support.shared_objects import find_library

_COMPILERS = ("cc", "gcc", "clang")


def link_shared_object(objects: Sequence[bytes], libraries: Sequence[str] = ()) -> bytes:
    """Link relocatable objects to an ELF shared object.

    The compiler is the environment's `CC`, or else the first of cc, gcc and clang that is there.
    `libraries` are the names of shared libraries that the objects call.

    Raises:
        BraidError: there is no C compiler, or it cannot link the objects.

    """
    return _link(objects, ["-shared", "-Wl,-z,noexecstack", "-Wl,-z,defs"], _named(libraries))


def link_relocatable(objects: Sequence[bytes]) -> bytes:
    """Join relocatable objects in one; raises as `link_shared_object` does."""
    return _link(objects, ["-r", "-nostdlib"], [])


@dataclass(frozen=True)
class LibrarySources:
    """The sources of a library, in addition to the objects of a model.

    `files` by name lie in one directory; those that end in `.c` and `.s` are compiled. `runtime` is
    an archive, or sources that are compiled too. Only symbols that fit the pattern `exports` are
    visible outside. `name` is the library's own name; `libraries` are those that it calls.
    """

    files: Mapping[str, bytes | memoryview]
    includes: Sequence[Path]
    runtime: Sequence[Path]
    exports: str
    name: str
    libraries: Sequence[str] = ()


def link_library(objects: Sequence[bytes], sources: LibrarySources) -> bytes:
    """Link objects, sources and an archive to a shared object for programs in C.

    Raises as `link_shared_object` does.
    """
    with tempfile.TemporaryDirectory(prefix="braid-link-") as name:
        directory = Path(name)
        for file, data in sources.files.items():
            (directory / file).write_bytes(data)
        exports = directory / "exports"
        exports.write_text(f"{{ global: {sources.exports}; local: *; }};\n")
        compiled = [file for file in sources.files if Path(file).suffix in (".c", ".s")]
        includes = [f"-I{path}" for path in sources.includes]
        command = [
            *(*_compiler(), "-shared", "-fPIC", "-O2", *includes, *compiled),
            *("-Wl,-z,noexecstack", "-Wl,-z,defs", f"-Wl,-soname,{sources.name}"),
            *(f"-Wl,--version-script={exports}", _response_file(directory, objects)),
            *(*map(str, sources.runtime), *_named(sources.libraries), "-ldl", "-o", "output"),
        ]
        _run(command, directory)
        return (directory / "output").read_bytes()


def _link(objects: Sequence[bytes], flags: Sequence[str], libraries: Sequence[str]) -> bytes:
    compiler = _compiler()
    with tempfile.TemporaryDirectory(prefix="braid-link-") as name:
        directory = Path(name)
        output = directory / "output"
        response = _response_file(directory, objects)
        _run([*compiler, *flags, response, *libraries, "-o", str(output)], directory)
        return output.read_bytes()


def _named(libraries: Sequence[str]) -> list[str]:
    """Return the arguments for shared libraries by the names of their files."""
    if not libraries:
        return ["-pthread", "-lm"]
    places = {path.parent for name in libraries if (path := find_library(name)) is not None}
    found = [f"-L{place}" for place in sorted(places)]
    return ["-Wl,--as-needed", *found, *(f"-l:{name}" for name in libraries), "-pthread", "-lm"]


def _response_file(directory: Path, objects: Sequence[bytes]) -> str:
    """Write the objects, and return the argument that names them all.

    It is a response file: a large model has more objects than a command line takes.

    A response file: a large model has more objects than a command line takes.
    """
    files = [directory / f"{index}.o" for index in range(len(objects))]
    for file, data in zip(files, objects, strict=True):
        file.write_bytes(data)
    response = directory / "objects"
    response.write_text("\n".join(shlex.quote(str(file)) for file in files))
    return f"@{response}"


def _run(command: Sequence[str], directory: Path) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
    except OSError as error:
        raise BraidError(
            f"cannot run the C compiler '{command[0]}': {error.strerror}",
            hint="set the environment variable CC to a C compiler",
        ) from error
    if result.returncode != 0:
        first_line = next(iter(result.stderr.splitlines()), "no message")
        raise BraidError(
            f"the C compiler '{command[0]}' cannot link the model: {first_line}",
            hint="CC names a compiler for a machine other than this one: CC=aarch64-linux-gnu-gcc",
        )


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
