"""Compute the key of all on which a compiled model depends: equal keys mean equal artifacts.

This excludes searches with a time limit, whose results may differ. Nothing of the compiler is
imported.
"""

import hashlib
import json
import operator
import os
import shutil
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from braid.driver.options import DEFAULTS, CompileOptions
from braid.runtime.artifact_cache import LIMIT
from braid.support.input_files import open_regular
from braid.support.installation import installation_stamp
from braid.support.model_bytes import is_mlir
from braid.support.records.record_store import default_store
from braid.support.settings import VARIABLES, Settings, settings_of_environment
from braid.support.tile_permission import may_use_tiles
from braid.targets.machines.identity import processor

_TOOLS = ("CC", "CXX", "CUDA_HOME")
"""Variables that say which tools compile."""
_PROGRAMS = ("c++", "cc", "ptxas")
"""Tools that are found by the search path where no variable names them."""
_WITHOUT_EFFECT = ("BRAID_CACHE_DIR", "BRAID_RTL_TRACE", "BRAID_TOKEN", LIMIT)
_OTHER_FILES = {
    # A key in `TensorProto.external_data`, behind its length, which may end in a zero.
    ".onnx": (b"\x08location", b"\x00location"),
    # Files of parameters, and targets that are files; escapes in the text might hide some.
    ".mlir": (b"braid.parameters", b".toml", b"\\"),
}
"""The bytes of a model that show that it may read other files, by the model's suffix."""
_NOT_KEPT = (
    "passes",  # which may do anything
    "emulate",  # emulated code for missing devices is timed
    "kernels",  # depends on libraries that may be installed in several versions
    "untuned",
    "untuned_seconds",
    "measure_orders",
    "order_seconds",
)
"""Options with which models have no key, unless their values are the default ones."""
_OF_THE_PROCESS = ("threads", "jobs", "load", "cache", "progress")
"""Options that bear on this process alone."""
_FILES = ("parameters", "use_profile")
"""Options that are files; the key has their digests."""
_SETTINGS = ("numerics", "precision")
"""Options that are settings, which the environment may give as well."""
_BESIDE_OPTIONS = (*_OF_THE_PROCESS, *_FILES, *_SETTINGS)
_MODEL, _TARGET = "model", "target"
_EMPTY_IS_NONE = ("shapes", "dims", "constants", "shape_buckets", "shape_bounds", "pin")
"""Options whose empty values have no meaning."""
_PIECE = 2**20
"""Bytes that are read at once."""


@dataclass(frozen=True)
class SourceState:
    """A model in a file or in bytes, with digests of it and of the files that options name.

    `stamps` has the files' times and sizes, which differ once a file is changed, unless it
    was written a tick of the system's clock before.
    """

    source: str | os.PathLike[str] | bytes
    name: str
    digests: Mapping[str, str]
    stamps: Mapping[str, tuple[int, ...]]

    def __str__(self) -> str:
        return f"'{self.name}'"

    def now(self, options: CompileOptions) -> "SourceState | None":
        """Return its state now, read again only if changed; None where it is no model any more."""
        is_same = _stamps(_files(self.source, options)) == self.stamps
        return self if is_same else state_of(self.source, options)


def state_of(source: object, options: CompileOptions) -> SourceState | None:
    """Return the state of a model, None for other objects than files and bytes, or if it reads
    other files.

    The result is also None for an unreadable source, whose compilation reports the error, and with
    options whose values do not determine their effect.
    """
    if not _given(options).keys().isdisjoint(_NOT_KEPT):
        return None
    if isinstance(source, bytes):
        name, place = "<bytes>", source
        suffixes = (".mlir" if is_mlir(source) else ".onnx",)
    elif isinstance(source, str | os.PathLike):
        path = Path(cast(str, source))
        name, place, suffixes = path.name, path.absolute(), (path.suffix.lower(),)
    else:
        return None
    if not set(suffixes) <= _OTHER_FILES.keys():
        return None
    patterns = tuple(text for suffix in suffixes for text in _OTHER_FILES[suffix])
    files = _files(place, options)
    stamps = _stamps(files)
    digests: dict[str, str | None] = {}
    if stamps is None:
        return None
    try:
        if isinstance(place, bytes):
            digests[_MODEL] = _digest(BytesIO(place), patterns)
        for what, path in files.items():
            digests[what] = _file_digest(path, patterns if what == _MODEL else ())
    except OSError:
        return None
    found = {what: digest for what, digest in digests.items() if digest is not None}
    return SourceState(place, name, found, stamps) if found == digests else None


def compilation_key(source: SourceState, options: CompileOptions) -> str | None:
    """Return a digest of all that changes the artifact of a model with these options.

    These are the bytes of the model and its name, the options and the files that they name, the
    processor, whether its tile registers may be used, how many of its cores there are for braid,
    the records, all that is installed, and variables of the environment. None where an option
    has no plain value, and where something was installed since this process began.
    """
    given = _given(options)
    installation = installation_stamp()
    if installation is None or "rules" in str(given.get("recompute", "")):  # a file, by its name
        return None
    try:
        facts = {
            "model": source.name,
            "files": dict(source.digests),
            "options": {n: v for n, v in given.items() if n not in _BESIDE_OPTIONS},
            "settings": _settings(options).said,
            "machine": (processor(), may_use_tiles(), len(os.sched_getaffinity(0))),
            "records": default_store().stamp(),
            "installation": installation,
            "programs": {name: _program(name) for name in _PROGRAMS},
            "environment": {
                name: value
                for name, value in os.environ.items()
                if (name.startswith("BRAID_") or name in _TOOLS)
                and name not in (*_WITHOUT_EFFECT, *VARIABLES)
            },
        }
        text = json.dumps(facts, sort_keys=True, default=_plain)
    except (OSError, ValueError, TypeError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _settings(options: CompileOptions) -> Settings:
    """Return the settings of a model that says none itself."""
    given = {name: getattr(options, name) for name in _SETTINGS}
    return settings_of_environment().with_given(given)


def _given(options: CompileOptions) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    return {name: value for name, value in vars(options).items() if _is_given(name, value)}


def _files(source: str | os.PathLike[str] | bytes, options: CompileOptions) -> dict[str, Any]:
    """Return the files of a model and of its options, by their role."""
    given = _given(options)
    files = {name: given[name] for name in _FILES if name in given}
    if str(Path(given.get(_TARGET, ""))).endswith(".toml"):
        files[_TARGET] = given[_TARGET]
    return files if isinstance(source, bytes) else {_MODEL: source, **files}


def _is_given(name: str, value: object) -> bool:
    """Return whether an option has another value than its default."""
    if name in _EMPTY_IS_NONE and isinstance(value, Mapping | tuple | list):
        return len(cast(Sized, value)) > 0
    default = getattr(DEFAULTS, name)
    return type(value) is not type(default) or value != default


def _plain(value: object) -> Any:
    """Return a value of an option in a form that JSON has. Raises TypeError if there is none."""
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, object], value))
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        bytes_ = np.ascontiguousarray(array).tobytes()
        return [str(array.dtype), array.shape, hashlib.sha256(bytes_).hexdigest()]
    return operator.index(cast(int, value))


def _stamps(files: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]] | None:
    """Return the system's status of each file; None if one is no file."""
    try:
        return {name: _stamp(path) for name, path in files.items()}
    except (OSError, ValueError, TypeError):  # weights may be given as arrays
        return None


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...]:
    status = Path(path).stat()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _program(name: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the program of this name on the search path, and its file's size and time."""
    found = shutil.which(name)
    stamps = None if found is None else _stamps({found: found})
    return None if found is None or stamps is None else (found, stamps[found])


def _file_digest(path: str | os.PathLike[str], patterns: tuple[bytes, ...] = ()) -> str | None:
    with open_regular(path) as file:
        return _digest(file, patterns)


def _digest(file: IO[bytes], patterns: tuple[bytes, ...]) -> str | None:
    """Return the digest of the bytes read; None if one of the patterns occurs in them.

    It is read, not mapped: another process may cut the file off meanwhile.
    """
    digest = hashlib.sha256()
    kept = max(map(len, patterns), default=1) - 1
    end = b""
    while piece := file.read(_PIECE):
        seam = end + piece[:kept]
        if any(text in piece or text in seam for text in patterns):
            return None
        digest.update(piece)
        end = (end + piece[-kept:])[-kept:] if kept else b""
    return digest.hexdigest()
