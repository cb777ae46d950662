"""What a compiled model depends on, as a key: equal keys mean equal artifacts.

Nothing of the compiler is imported for it.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path

from braid.runtime.artifact_cache import LIMIT
from braid.support.input_files import map_regular
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


def compilation_key(path: Path, *, target: str | None, options: Mapping[str, object]) -> str | None:
    """A digest of all that bears on what the model at `path` is compiled to.

    These are the bytes of the file and its name, `options`, the target's file, the processor,
    whether its tile registers may be used, how many of its cores there are for braid, the records,
    all that is installed, and variables of the environment. None for a model whose tensors are in
    other files, and for what cannot be read: whoever compiles it says what is wrong.
    """
    suffix = path.suffix.lower()
    if suffix not in _OTHER_FILES:
        return None
    try:
        data = map_regular(path)
        if any(data.find(text) >= 0 for text in _OTHER_FILES[suffix]):
            return None
        model = _digest(data)
        described = None
        if target is not None and target.endswith(".toml"):
            described = _digest(map_regular(target))
    except (OSError, ValueError):
        return None
    facts = {
        "model": (path.name, model),
        "options": dict(options),
        "target": (target, described),
        "machine": (processor(), may_use_tiles(), len(os.sched_getaffinity(0))),
        "records": default_store().stamp(),
        "installation": installation_stamp(),
        "environment": {
            name: value
            for name, value in os.environ.items()
            if (name.startswith("BRAID_") or name in _TOOLS) and name not in _WITHOUT_EFFECT
        },
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _digest(data: mmap.mmap | bytes) -> str:
    return hashlib.sha256(data).hexdigest()
