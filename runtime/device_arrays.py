"""Arrays in the memory of a GPU, which other packages hand over by DLPack, without copies.

The structs are those of DLPack's header (version 1), with and without a version; see "Python
Specification for DLPack" for their ownership. Streams: an exporter is asked for stream 1, the
legacy default stream. The runtime waits for it before it uses memory that it has not allocated.
When a run returns, it has ended, so that streams of the caller need not wait for anything.
"""

import ctypes
import math
import weakref
from collections.abc import Callable, Sequence
from ctypes import (
    POINTER,
    addressof,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
)
from ctypes import c_void_p as pointer
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from braid.runtime.dtypes import numpy_dtype
from braid.support.errors import BraidError

CUDA = 2
"""`kDLCUDA`."""
_LEGACY_STREAM = 1
_READ_ONLY, _COPIED = 1, 2  # flags
_MAJOR = 1
_FLOAT8 = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
_DTYPES: dict[tuple[int, int], str] = {
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits): f"float{bits}" for bits in (16, 32, 64)},
    (4, 16): "bfloat16",
    **{(5, bits): f"complex{bits}" for bits in (64, 128)},
    (6, 8): "bool",
    **{(7 + number, 8): f"float8_{name}" for number, name in enumerate(_FLOAT8)},
}
"""Names by `DLDataTypeCode` and bits."""

# Capsules point to their names, which live as long as this module.
_PLAIN, _USED_PLAIN = c_char_p(b"dltensor"), c_char_p(b"used_dltensor")
_VERSIONED, _USED_VERSIONED = c_char_p(b"dltensor_versioned"), c_char_p(b"used_dltensor_versioned")
_Deleter = ctypes.CFUNCTYPE(None, pointer)
_of_capsule = (ctypes.py_object, c_char_p)
_python = ctypes.PyDLL(None)
_is_valid = ctypes.PYFUNCTYPE(c_int, *_of_capsule)(("PyCapsule_IsValid", _python))
_get_pointer = ctypes.PYFUNCTYPE(pointer, *_of_capsule)(("PyCapsule_GetPointer", _python))
_set_name = ctypes.PYFUNCTYPE(c_int, *_of_capsule)(("PyCapsule_SetName", _python))


class _Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", pointer),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _Managed(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = (("tensor", _Tensor), ("context", pointer), ("deleter", pointer))


class _ManagedVersioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", pointer),
        ("deleter", pointer),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A dense row-major array at `address` in the memory of GPU `device`, CUDA's number of it.

    `given` is the object of the caller that it views; `owner` keeps the memory until it goes.
    """

    given: object
    device: int
    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: object

    @property
    def nbytes(self) -> int:
        """Return the bytes that the array takes."""
        return math.prod(self.shape) * self.dtype.itemsize


Buffer = NDArray[Any] | DeviceArray

_view: Callable[[NDArray[Any]], c_char] = cast(Any, c_char.from_buffer)
"""Returns a view of the first byte; looked up once, since each call of a model needs it."""


def address_of(buffer: Buffer) -> int:
    """Return where a buffer begins."""
    if isinstance(buffer, DeviceArray):
        return buffer.address
    if buffer.flags.carray and buffer.size and buffer.dtype.isbuiltin == 1:
        return addressof(_view(buffer))
    return buffer.ctypes.data  # several times as slow: it makes an object of Python


def is_on_gpu(value: object) -> bool:
    """Return whether an object exports memory of a GPU of CUDA."""
    describe = getattr(value, "__dlpack_device__", None)
    if describe is None or not hasattr(value, "__dlpack__"):
        return False
    try:
        return int(describe()[0]) == CUDA
    except (TypeError, ValueError, IndexError, RuntimeError, BufferError):
        return False  # an invalid one is reported where it is exported


def array_on_gpu(what: str, value: Any, *, written: bool) -> DeviceArray:
    """View an object that exports dense memory of a GPU; `written` if results go there.

    `what` is the object in messages, such as `input 'x'`.

    Raises:
        BraidError: it cannot be exported, is not dense, has an unknown element type, or may not be
            written.

    """
    try:
        capsule = _export(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise BraidError(
            f"{what} is a {type(value).__name__} that cannot be exported by DLPack: {error}",
            hint="export a dense array that needs no gradients, as with x.detach().contiguous()",
        ) from error
    return _Capsule(what, capsule).array(value, written)


def _export(value: Any) -> object:
    try:
        return value.__dlpack__(stream=_LEGACY_STREAM, max_version=(_MAJOR, 0), copy=False)
    except TypeError:  # of a package from before version 1
        return value.__dlpack__(stream=_LEGACY_STREAM)


class _Capsule:
    """A capsule that an exporter handed over; its deleter is called when its last array goes."""

    def __init__(self, what: str, capsule: object) -> None:
        """Take it over. Raises `BraidError` if it is no capsule, or was consumed already."""
        self._what = what
        for name, used, struct in (
            (_VERSIONED, _USED_VERSIONED, _ManagedVersioned),
            (_PLAIN, _USED_PLAIN, _Managed),
        ):
            if _is_valid(capsule, name):
                address: int = _get_pointer(capsule, name)
                _set_name(capsule, used)
                self._managed: Any = struct.from_address(address)
                finalizer = weakref.finalize(self, _delete, self._managed.deleter, address)
                finalizer.atexit = False  # then packages may be gone already
                return
        raise BraidError(
            f"{what} exports no capsule of DLPack that is still to be used: {capsule!r}",
            hint="__dlpack__ makes a new one each time that it is called",
        )

    def array(self, given: object, written: bool) -> DeviceArray:
        """Return the array, which is for results if it is `written`."""
        managed, what = self._managed, self._what
        flags = 0
        if isinstance(managed, _ManagedVersioned):
            major: int = managed.major
            if major != _MAJOR:
                raise BraidError(
                    f"{what} is exported by version {major} of DLPack, expected {_MAJOR}",
                    hint="export it for max_version=(1, 0)",
                )
            flags = cast(int, managed.flags)
        if written and flags & (_READ_ONLY | _COPIED):
            raise BraidError(
                f"{what} is {'read-only' if flags & _READ_ONLY else 'a copy'}, expected memory "
                "that results are written to"
            )
        tensor: Any = managed.tensor
        if tensor.device_type != CUDA:
            raise BraidError(
                f"{what} says that it is in the memory of a GPU, and exports memory of a device of "
                f"DLPack's type {tensor.device_type}"
            )
        shape = tuple(int(tensor.shape[d]) for d in range(tensor.ndim))
        array = DeviceArray(
            given,
            int(tensor.device_id),
            (tensor.data or 0) + int(tensor.byte_offset),
            _dtype(what, tensor),
            shape,
            self,
        )
        strides = [int(tensor.strides[d]) for d in range(tensor.ndim)] if tensor.strides else None
        if not _is_dense(shape, strides):
            raise BraidError(
                f"{what} has shape {shape} with strides {tuple(strides or ())} in the memory of "
                f"GPU {array.device}, expected a dense row-major array",
                hint="make it dense there, as with x.contiguous()",
            )
        if array.address % array.dtype.itemsize != 0:
            raise BraidError(
                f"{what} begins at address {array.address:#x}, which is no multiple of its "
                f"elements' {array.dtype.itemsize} bytes",
                hint="copy it, as with x.clone()",
            )
        return array


def _delete(deleter: int | None, address: int) -> None:
    if deleter is not None:
        _Deleter(deleter)(address)


def _dtype(what: str, tensor: Any) -> np.dtype[Any]:
    name = _DTYPES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise BraidError(
            f"{what} has elements of {tensor.lanes} times {tensor.bits} bits of DLPack's type "
            f"{tensor.code}, which braid does not know",
            hint=f"convert it to one of {', '.join(sorted(_DTYPES.values()))}",
        )
    return numpy_dtype(name)


def _is_dense(shape: Sequence[int], strides: Sequence[int] | None) -> bool:
    """Return whether elements lie in row-major order, for which None stands; strides count
    elements.
    """
    if strides is None or 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True
