"""The process that runs an artifact on the arrays of a `.npz` file, and writes such a file."""

import sys
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from braid.runtime.binding import bind_inputs
from braid.runtime.model import load
from braid.support.errors import BraidError
from braid.tools.service.usage import over_limit, restrict_process

_LARGEST = 1 << 32
"""Bytes of all inputs, unpacked."""


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a `.npz` file without pickled objects.

    Raises:
        BraidError: it is no array file, has objects, or is too large once unpacked.

    """
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(entry.file_size for entry in file.infolist())
        if size > _LARGEST:
            raise BraidError(f"the inputs take {size} bytes, expected at most {_LARGEST}")
        with np.load(path, allow_pickle=False) as arrays:
            return {str(name): np.asarray(arrays[name]) for name in arrays.files}
    except BraidError:
        raise
    except Exception as error:  # numpy and zipfile have many, for files made by others
        raise BraidError(
            f"the inputs are not a .npz file: {error}", hint="numpy.savez writes one"
        ) from error


def main() -> int:
    """Run; an error is said on standard output, with status 1."""
    artifact, inputs, outputs = map(Path, sys.argv[1:4])
    memory, output = map(int, sys.argv[4:])
    restrict_process(memory, output)
    try:
        arrays: dict[str, Any] = dict(read_arrays(inputs))
        model = load(artifact)
        found = model.run_numbers(bind_inputs(model.inputs, (), arrays, drawn=model.drawn))
        results = {spec.name: array for spec, array in zip(model.outputs, found, strict=True)}
        known = {
            name: array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
            for name, array in results.items()
        }
        np.savez(outputs, allow_pickle=False, **known)
    except BraidError as error:
        print("; ".join(filter(None, [error.message, error.hint])))
        return 1
    except (MemoryError, OSError) as error:
        print(over_limit(error, memory, output) or f"the server cannot run it: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
