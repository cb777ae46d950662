"""Arrays of another package in GPU memory, exported by DLPack."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from braid.runtime.device_arrays import CUDA
from test.run.cuda.conftest import Driver

PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
LEGACY_STREAM = ctypes.c_void_p(1)

_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_python = ctypes.PyDLL(None)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _python)
)
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", _python))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)


class CTensor(ctypes.Structure):
    """`DLTensor`, as the header of DLPack has it."""

    _fields_ = (
        *(("data", ctypes.c_void_p), ("type", ctypes.c_int), ("id", ctypes.c_int)),
        *(("ndim", ctypes.c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8)),
        *(("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64))),
        *(("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)),
    )


class CPlain(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = (("tensor", CTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class CVersioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p)),
        *(("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", CTensor)),
    )


_alive: dict[int, tuple[object, "GpuTensor"]] = {}


@_DELETER
def _delete(address: int) -> None:
    _, tensor = _alive.pop(address)  # a KeyError where it was deleted before
    tensor.deleted += 1


@_DESTRUCTOR
def _destroy(capsule: int) -> None:
    name = _name(capsule)
    if name in (PLAIN, VERSIONED):  # nobody has taken it over
        _delete(_pointer(capsule, name))


@dataclass(eq=False)
class GpuTensor:
    """Some elements of an allocation; `exports` adds errors to the exports."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    device: int = 0
    version: int | None = 1
    flags: int = 0
    byte_offset: int = 0
    exports: dict[str, int] = field(default_factory=dict[str, int])
    streams: list[object] = field(default_factory=list[object])
    exported: int = 0
    deleted: int = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        if options and self.version is None:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.streams.append(stream)
        self.exported += 1
        return self.capsule()

    def capsule(self) -> object:
        """Return a new capsule, which keeps its tensor alive."""
        made: Any = CPlain() if self.version is None else CVersioned()
        sizes = (ctypes.c_int64 * len(self.shape))(*self.shape)
        steps = (ctypes.c_int64 * len(self.shape))(*(self.strides or ()))
        made.tensor = CTensor(
            *(self.address - self.byte_offset, CUDA, self.device, len(self.shape)),
            *(CODES[self.dtype.kind], 8 * self.dtype.itemsize, 1),
            ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(steps if self.strides else None, ctypes.POINTER(ctypes.c_int64)),
            self.byte_offset,
        )
        for name, value in self.exports.items():
            setattr(made.tensor, name, value)
        made.deleter = ctypes.cast(_delete, ctypes.c_void_p)
        if self.version is not None:
            made.major, made.flags = self.version, self.flags
        address = ctypes.addressof(made)
        _alive[address] = ((made, sizes, steps), self)
        destroy = ctypes.cast(_destroy, ctypes.c_void_p)
        return _new(address, PLAIN if self.version is None else VERSIONED, destroy)


class Package:
    """Another package that uses a GPU, by the same driver and the device's primary context."""

    def __init__(self, driver: Driver, device: int = 0) -> None:
        self._cuda = ctypes.CDLL(str(driver.library))
        self._device = device
        handle = ctypes.c_void_p()
        assert self._cuda.cuInit(0) == 0
        assert self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), device) == 0
        assert self._cuda.cuCtxPushCurrent_v2(handle) == 0
        self._owned: list[ctypes.c_uint64] = []

    def tensor(self, values: np.ndarray, offset: int = 0, **options: Any) -> GpuTensor:
        """Return a tensor of these values, `offset` bytes into an allocation."""
        address = ctypes.c_uint64()
        size = ctypes.c_size_t(values.nbytes + offset)
        assert self._cuda.cuMemAlloc_v2(ctypes.byref(address), size) == 0
        self._owned.append(address)
        place = ctypes.c_uint64(address.value + offset)
        source = ctypes.c_void_p(values.ctypes.data)
        assert self._cuda.cuMemcpyHtoD_v2(place, source, ctypes.c_size_t(values.nbytes)) == 0
        return GpuTensor(place.value, values.dtype, values.shape, device=self._device, **options)

    def begin_copy(self, to: GpuTensor, source: GpuTensor) -> None:
        """Begins a copy in the legacy default stream, for which nobody waits."""
        count = int(np.prod(to.shape)) * to.dtype.itemsize
        addresses = ctypes.c_uint64(to.address), ctypes.c_uint64(source.address)
        size = ctypes.c_size_t(count)
        assert self._cuda.cuMemcpyDtoDAsync_v2(*addresses, size, LEGACY_STREAM) == 0

    def values(self, tensor: GpuTensor) -> np.ndarray:
        """Return the values in memory."""
        found = np.empty(tensor.shape, tensor.dtype)
        target, source = ctypes.c_void_p(found.ctypes.data), ctypes.c_uint64(tensor.address)
        assert self._cuda.cuMemcpyDtoH_v2(target, source, ctypes.c_size_t(found.nbytes)) == 0
        return found

    def close(self, tensors: Sequence[GpuTensor] = ()) -> None:
        """Free all memory; every exported tensor was deleted once."""
        for tensor in tensors:
            assert tensor.exported == tensor.deleted
        for address in self._owned:
            assert self._cuda.cuMemFree_v2(address) == 0
        assert self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0
        assert self._cuda.cuDevicePrimaryCtxRelease_v2(self._device) == 0
