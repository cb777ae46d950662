"""Values of `TensorProto`s, memory-mapped where they are bytes in a file."""

import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError, SourceLocation, UnsupportedError
from braid.support.input_files import OutsideError, map_regular, path_beside

_RANK = 32
_DIGITS = 40


class TensorReader:
    """A reader of the tensors of the model at `model`, to which external data is relative.

    Arrays are views into memory maps of the files, at whatever alignment the file has, and are
    read-only.
    """

    def __init__(self, model: Path | None, location: SourceLocation) -> None:
        self._model = model
        self._location = location
        self._maps: dict[Path, mmap.mmap | bytes] = {}

    def read(self, tensor: TensorProto) -> Array:
        """Return the value of `tensor`.

        Raises BraidError for missing or short external data, UnsupportedError for element types
        that the dialect does not have.
        """
        dtype = self.dtype(tensor.data_type, tensor.name)
        self._check_shape(tensor)
        try:
            if tensor.data_location == TensorProto.EXTERNAL:
                return self._external(tensor, dtype)
            return numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as error:
            raise self._error(f"tensor '{tensor.name}': {error}") from error

    def texts(self, tensor: TensorProto) -> list[str]:
        """Return the elements of a tensor of texts, in row-major order.

        Raises BraidError if they are not UTF-8, or if the shape has another number of elements.
        """
        self._check_shape(tensor)
        if len(tensor.string_data) != math.prod(tensor.dims):
            raise self._error(
                f"tensor '{tensor.name}' has {len(tensor.string_data)} texts, expected "
                f"{math.prod(tensor.dims)}"
            )
        try:
            return [text.decode() for text in tensor.string_data]
        except UnicodeDecodeError as error:
            raise self._error(f"tensor '{tensor.name}' has text that is no UTF-8") from error

    def _check_shape(self, tensor: TensorProto) -> None:
        if len(tensor.dims) > _RANK or min(tensor.dims, default=0) < 0:
            shown = f"{len(tensor.dims)} dims" if len(tensor.dims) > _RANK else list(tensor.dims)
            raise self._error(
                f"tensor '{tensor.name}' has {shown}, expected at most {_RANK}, none negative"
            )

    def dtype(self, data_type: int, name: str) -> np.dtype[Any]:
        """Return numpy's dtype for an ONNX element type.

        Raises UnsupportedError if braid has none.
        """
        known = TensorProto.DataType.values()
        if data_type not in known or data_type == TensorProto.UNDEFINED:
            raise self._error(f"'{name}' has unknown element type {data_type}")
        type_name = TensorProto.DataType.Name(data_type)
        unsupported = UnsupportedError(
            f"'{name}' has element type {type_name}, which is not supported",
            location=self._location,
        )
        if data_type == TensorProto.STRING:
            raise unsupported
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(data_type))
        try:
            from_numpy(dtype)
        except UnsupportedError as error:
            raise unsupported from error
        return dtype

    def _external(self, tensor: TensorProto, dtype: np.dtype[Any]) -> Array:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        shape = tuple(tensor.dims)
        needed = math.prod(shape) * dtype.itemsize
        offset = _number(entries, "offset", 0)
        length = _number(entries, "length", needed)
        if length != needed:
            raise self._error(
                f"tensor '{tensor.name}' has {length} bytes, expected {needed} for shape "
                f"{list(shape)}"
            )
        if needed == 0:
            return np.zeros(shape, dtype)
        file = self._map(self._path(tensor, entries))
        if offset + needed > len(file):
            raise self._error(
                f"external data of tensor '{tensor.name}' ends at byte {offset + needed}, but "
                f"'{entries['location']}' has {len(file)} bytes"
            )
        return np.ndarray(shape, dtype, buffer=file, offset=offset)

    def _path(self, tensor: TensorProto, entries: Mapping[str, str]) -> Path:
        location = entries.get("location", "")
        if self._model is None:
            raise self._error(
                f"tensor '{tensor.name}' is stored in '{location}', but the model came from memory",
                hint="load it with its external data, or give the path of the .onnx file",
            )
        try:
            return path_beside(self._model, location)
        except OutsideError as error:
            raise self._error(
                f"tensor '{tensor.name}' is stored in '{location}', which {error}",
                hint="put the file itself beside the .onnx file",
            ) from error

    def _map(self, path: Path) -> mmap.mmap | bytes:
        if path not in self._maps:
            try:
                self._maps[path] = map_regular(path)
            except OSError as error:
                raise self._error(
                    f"cannot read external data '{path}': {error.strerror}",
                    hint="put the file beside the .onnx file",
                ) from error
        return self._maps[path]

    def _error(self, message: str, hint: str | None = None) -> BraidError:
        return BraidError(message, location=self._location, hint=hint)


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    """Return an entry as a number of bytes. Raises ValueError if it is invalid."""
    text = entries.get(key, str(default))
    if not text.isdecimal() or len(text) > _DIGITS:
        raise ValueError(f"'{key}' of its external data is '{text[:_DIGITS]}', expected bytes")
    return int(text)
