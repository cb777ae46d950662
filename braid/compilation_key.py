"""What a compiled model depends on, as a key: equal keys mean equal artifacts.

Nothing of the compiler is imported for it.
"""

import hashlib
import json
import operator
import os
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

from braid.compile_options import CompileOptions
from braid.runtime.artifact_cache import LIMIT
from braid.support.input_files import open_regular
from braid.support.installation import installation_stamp
from braid.support.record_store import default_store
from braid.support.tile_permission import may_use_tiles
from braid.targets.machines.identity import processor

_TOOLS = ("CXX", "CUDA_HOME")
"""Variables that say which tools compile."""
_WITHOUT_EFFECT = ("BRAID_CACHE_DIR", LIMIT)
_OTHER_FILES = {
    # The key of an entry of `TensorProto.external_data`, a field of its length, as protobuf has it.
    ".onnx": (b"\x0a\x08location",),
    # Files of parameters, and targets that are files.
    ".mlir": (b"braid.parameters", b".toml"),
}
"""What a model holds that reads other files, by its suffix."""
_NOT_KEPT = (
    "passes",  # which may do anything
    "emulate",  # what is emulated is timed, for devices that are not here
    "kernels",  # of libraries, of which more than one version may be found
    "on_miss",
    "on_miss_seconds",
    "measure_orders",
    "order_seconds",
)
"""Options with which models have no key, unless their values are the default ones."""
_OF_THE_PROCESS = ("threads", "jobs", "load")
"""Options that bear on this process alone."""
_FILES = ("parameters", "use_profile")
"""Options that are files, of which the key has digests."""
_EMPTY_IS_NONE = ("shapes", "shape_buckets", "shape_bounds", "pin")
"""Options of which an empty value says nothing."""
_DEFAULTS = CompileOptions()
_PIECE = 2**20
"""Bytes that are read at once."""


@dataclass(frozen=True)
class SourceState:
    """A model in a file or in bytes, and a digest of what it was.

    `stamp` is what the system says of the file, which is another one when the file is changed.
    """

    source: str | os.PathLike[str] | bytes
    name: str
    digest: str
    stamp: tuple[int, ...]

    def __str__(self) -> str:
        return f"'{self.name}'"

    def now(self) -> "SourceState | None":
        """As it is now; None where it is no model any more. Read again only if it was changed."""
        if isinstance(self.source, bytes) or _stamp(self.source) == self.stamp:
            return self
        return state_of(self.source)


def state_of(source: object) -> SourceState | None:
    """The state of a model, None for what is neither a file nor bytes, or reads other files.

    Nor is there one of what cannot be read: whoever compiles it says what is wrong.
    """
    if isinstance(source, bytes):
        patterns = tuple(text for texts in _OTHER_FILES.values() for text in texts)
        digest = _digest(BytesIO(source), patterns)
        return None if digest is None else SourceState(source, "<bytes>", digest, ())
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(cast(str, source))
    stamp, patterns = _stamp(path), _OTHER_FILES.get(path.suffix.lower())
    if patterns is None or stamp is None:
        return None
    try:
        digest = _file_digest(path, patterns)
    except OSError:
        return None
    return None if digest is None else SourceState(path.absolute(), path.name, digest, stamp)


def compilation_key(source: SourceState, options: CompileOptions) -> str | None:
    """A digest of all that bears on what a model is compiled to with these options.

    These are the bytes of the file and its name, the options and the files that they name, the
    processor, whether its tile registers may be used, how many of its cores there are for braid,
    the records, all that is installed, and variables of the environment. None with options whose
    effect is not told by their values, and where something was installed since this process began.
    """
    given = {name: value for name, value in vars(options).items() if _is_given(name, value)}
    if not given.keys().isdisjoint(_NOT_KEPT):
        return None
    installation = installation_stamp()
    if installation is None or "rules" in str(given.get("recompute", "")):  # a file, by its name
        return None
    try:
        files = {name: _file_digest(given[name]) for name in _FILES if name in given}
        target = cast(str, os.fspath(given.get("target", "")))
        if target.endswith(".toml"):
            files["target"] = _file_digest(target)
        facts = {
            "model": (source.name, source.digest),
            "options": {n: v for n, v in given.items() if n not in (*_OF_THE_PROCESS, *_FILES)},
            "files": files,
            "machine": (processor(), may_use_tiles(), len(os.sched_getaffinity(0))),
            "records": default_store().stamp(),
            "installation": installation,
            "environment": {
                name: value
                for name, value in os.environ.items()
                if (name.startswith("BRAID_") or name in _TOOLS) and name not in _WITHOUT_EFFECT
            },
        }
        text = json.dumps(facts, sort_keys=True, default=_plain)
    except (OSError, ValueError, TypeError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _is_given(name: str, value: object) -> bool:
    """Whether an option says anything else than its default."""
    if name in _EMPTY_IS_NONE and isinstance(value, Mapping | tuple | list):
        return len(cast(Sized, value)) > 0
    default = getattr(_DEFAULTS, name)
    return type(value) is not type(default) or value != default


def _plain(value: object) -> Any:
    """A value of an option that JSON has no form for. Raises TypeError for what is none."""
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, object], value))
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    return operator.index(cast(int, value))


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _file_digest(path: str | os.PathLike[str], patterns: tuple[bytes, ...] = ()) -> str | None:
    with open_regular(path) as file:
        return _digest(file, patterns)


def _digest(file: IO[bytes], patterns: tuple[bytes, ...]) -> str | None:
    """The digest of what is read; None where one of the patterns is in it.

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
