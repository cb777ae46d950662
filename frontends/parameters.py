"""Parameter files: the weights of a model beside its `.mlir`, in the safetensors format.

The format (https://huggingface.co/docs/safetensors) is a little-endian u64 with the size of a
JSON header, the header, and the tensors without gaps. Values are views of the mapped file, and
the writer takes one tensor at a time: the weights of a model never need to fit into memory.
"""

import json
import math
import mmap
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr

from braid.dialects.braid.attribute_names import PARAMETERS
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError, SourceLocation, UnsupportedError
from braid.support.input_files import OutsideError, map_regular, parse_json, path_beside

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U64": np.dtype(np.uint64),
    "U32": np.dtype(np.uint32),
    "U16": np.dtype(np.uint16),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LENGTH_BYTES = 8
_DATA_ALIGN = 64
_RANK = 32


@dataclass(frozen=True)
class _Entry:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    """First byte, counted from the start of the file."""


class ParameterFile(Mapping[str, Array]):
    """The tensors of a safetensors file by key: read-only views, read when they are used."""

    def __init__(self, path: Path) -> None:
        """Map the file and read its header.

        Raises:
            BraidError: the file is missing, truncated, or not in the format.

        """
        location = SourceLocation(str(path))
        try:
            self._data = map_regular(path)
        except OSError as error:
            raise BraidError(
                f"cannot read the parameter file '{path}': {error.strerror}",
                hint="keep it beside the .mlir file that names it",
            ) from error
        try:
            self._entries = _read_header(self._data)
        except (BraidError, ValueError, KeyError, TypeError, AttributeError) as error:
            detail = error.message if isinstance(error, BraidError) else repr(error)
            raise BraidError(f"not a parameter file: {detail}", location=location) from error

    def __getitem__(self, key: str) -> Array:
        entry = self._entries[key]
        return np.ndarray(entry.shape, entry.dtype, buffer=self._data, offset=entry.begin)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _read_header(data: mmap.mmap | bytes) -> dict[str, _Entry]:
    if not len(data):
        raise BraidError("the file is empty")
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    base = _LENGTH_BYTES + length
    if len(data) < _LENGTH_BYTES or base > len(data):
        raise BraidError(f"its header should end within the {len(data)} bytes of the file")
    header = cast(dict[str, dict[str, Any]], parse_json(data[_LENGTH_BYTES:base]))
    entries = {
        key: _read_entry(key, fields, base)
        for key, fields in header.items()
        if key != "__metadata__"
    }
    for key, entry in entries.items():
        end = entry.begin + math.prod(entry.shape) * entry.dtype.itemsize
        if end > len(data):
            raise BraidError(f"'{key}' should end at byte {end}, the file has {len(data)}")
    return entries


def _read_entry(key: str, fields: Mapping[str, Any], base: int) -> _Entry:
    if fields["dtype"] not in list(_DTYPES):
        raise BraidError(f"'{key}' has dtype {fields['dtype']}, expected one of {list(_DTYPES)}")
    dtype, shape = _DTYPES[fields["dtype"]], _sizes(key, fields["shape"])
    begin, end = _sizes(key, fields["data_offsets"])
    expected = math.prod(shape) * dtype.itemsize
    if end - begin != expected:
        raise BraidError(f"'{key}' has {end - begin} bytes, expected {expected} for {shape}")
    return _Entry(dtype, shape, base + begin)


def _sizes(key: str, values: object) -> tuple[int, ...]:
    """Return a list of sizes.

    Raises BraidError for anything else, and for more than numpy has dims.
    """
    sizes = cast(list[object], values) if isinstance(values, list) else [None]
    if len(sizes) > _RANK or not all(type(size) is int and size >= 0 for size in sizes):
        raise BraidError(
            f"'{key}' has {reprlib.repr(cast(object, values))}, expected at most {_RANK} sizes"
        )
    return tuple(cast(list[int], sizes))


def write_parameters(file: IO[bytes], parameters: Mapping[str, Array]) -> None:
    """Write the parameters to a binary stream, one at a time, widest elements first.

    Raises:
        UnsupportedError: an element type that the format does not have.
        OSError: raised by writes to `file`.

    """
    kinds = {key: (array.dtype, array.shape) for key, array in parameters.items()}
    order = sorted(kinds, key=lambda key: -kinds[key][0].itemsize)  # keeps every tensor aligned
    header: dict[str, dict[str, Any]] = {}
    offset = 0
    for key in order:
        dtype, shape = kinds[key]
        if dtype not in _NAMES:
            raise UnsupportedError(f"parameter '{key}' has dtype {dtype.name}, which has no name")
        end = offset + math.prod(shape) * dtype.itemsize
        header[key] = {"dtype": _NAMES[dtype], "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _DATA_ALIGN)
    file.write(len(text).to_bytes(_LENGTH_BYTES, "little"))
    file.write(text)
    for key in order:
        file.write(np.ascontiguousarray(parameters[key]).reshape(-1).view(np.uint8).data)


def parameters_of(module: ModuleOp, model: Path) -> Mapping[str, Array]:
    """Return the parameters that a module from the file `model` names, empty if none.

    Raises:
        BraidError: the attribute is not a string, or names a file that is outside of the model's
            directory or cannot be used.

    """
    attribute = module.attributes.get(PARAMETERS)
    if attribute is None:
        return {}
    if not isinstance(attribute, StringAttr):
        raise BraidError(f"module attribute '{PARAMETERS}' is {attribute}, expected text")
    try:
        return ParameterFile(path_beside(model, attribute.data))
    except OutsideError as error:
        raise BraidError(
            f"the parameter file '{attribute.data}' {error}",
            location=SourceLocation(str(model)),
            hint="put the file itself beside the .mlir file, or name it by "
            "braid.compile(…, parameters=FILE)",
        ) from error
