"""`OrtValue`: a tensor in this computer's memory, or in that of a GPU."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from braid.onnxruntime.element_types import element_dtype, element_number, type_text
from braid.onnxruntime.errors import InvalidArgument, WrongTypeError, WrongUseError, WrongValueError
from braid.runtime.device_arrays import CUDA, Buffer, DeviceArray, array_on_gpu, is_on_gpu

Array = NDArray[Any]
_DEVICES = {"cpu": 0, "cuda": 1, "gpu": 1}
"""ONNX Runtime's numbers of the kinds of devices."""


class OrtDevice:
    """Where a tensor is: `cpu`, or `cuda` and the number of the GPU."""

    def __init__(self, name: str, device_id: int) -> None:
        """Use `OrtDevice.make` instead."""
        self._name, self._id = name, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """Return the device of this name and number. Raises ValueError for other names."""
        return OrtDevice(device_name(ort_device_name), device_id)

    def device_id(self) -> int:
        """Return the number of the device among those of its kind."""
        return self._id

    def device_type(self) -> int:
        """Return ONNX Runtime's number of the kind of device: 0 for CPUs, 1 for GPUs."""
        return _DEVICES[self._name]


def device_name(name: object) -> str:
    """Return `cpu` or `cuda`. Raises ValueError for other devices."""
    if not isinstance(name, str) or name.lower() not in _DEVICES:
        raise WrongValueError(f"device {name!r:.100} is not known, expected 'cpu' or 'cuda'")
    return "cpu" if name.lower() == "cpu" else "cuda"


class OrtValue:
    """A tensor that sessions take and give, which shares the memory of what it was made of."""

    def __init__(self, buffer: Buffer, given: object = None) -> None:
        """Use the class methods instead; `given` is what exports memory of a GPU."""
        self._buffer, self._given = buffer, given

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> "OrtValue":
        """Return a value that shares the array's memory, unless its elements are not in order.

        Raises:
            RuntimeError: it is to be on a GPU, of which braid allocates no memory.

        """
        _on_cpu(device_type)
        if not isinstance(cast(object, numpy_obj), np.ndarray):
            raise WrongTypeError(
                f"a value is made of a {type(numpy_obj).__name__}, expected a numpy array"
            )
        return cls(np.require(numpy_obj, requirements="C"))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(
        cls, data: Array, /, onnx_element_type: int
    ) -> "OrtValue":
        """Return a value that has the bytes of the array as elements of another type."""
        dtype = element_dtype(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise WrongValueError(
                f"the array has elements of {data.dtype.itemsize} bytes, those of {dtype.name} "
                f"have {dtype.itemsize}"
            )
        return cls.ortvalue_from_numpy(np.ascontiguousarray(data).view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: object = np.float32,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> "OrtValue":
        """Return a value whose elements are any numbers; raises as `ortvalue_from_numpy`."""
        _on_cpu(device_type)
        return cls(np.empty(tuple(shape), element_dtype(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> "OrtValue":
        """Return a value that shares the memory of an object with `__dlpack__`, on a GPU too.

        Raises:
            BraidError: it exports no dense memory of a CPU or a GPU of CUDA.
            TypeError: it has no `__dlpack__`.

        """
        if not hasattr(data, "__dlpack__") or not hasattr(data, "__dlpack_device__"):
            raise WrongTypeError(
                f"a {type(data).__name__} has no __dlpack__ and __dlpack_device__",
                hint="give the array itself instead of its capsule",
            )
        if is_on_gpu(data):
            return cls(array_on_gpu("the value", data, written=True), data)
        try:
            return cls.ortvalue_from_numpy(np.from_dlpack(data))
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise InvalidArgument(
                f"a {type(data).__name__} cannot be exported by DLPack: {error}"
            ) from error

    @property
    def buffer(self) -> Buffer:
        """The array, or where it is in the memory of a GPU."""
        return self._buffer

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        buffer = self._buffer
        return buffer.address if isinstance(buffer, DeviceArray) else buffer.ctypes.data

    def device_name(self) -> str:
        """Return `cpu` or `cuda`."""
        return "cuda" if isinstance(self._buffer, DeviceArray) else "cpu"

    def shape(self) -> list[int]:
        """Return the sizes."""
        return list(self._buffer.shape)

    def data_type(self) -> str:
        """Return the type as text, such as `tensor(float)`."""
        return type_text(self._buffer.dtype.name)

    def element_type(self) -> int:
        """Return the number of the element type in `onnx.TensorProto`."""
        return element_number(self._buffer.dtype.name)

    def tensor_size_in_bytes(self) -> int:
        """Return how many bytes the elements take."""
        return self._buffer.nbytes

    def has_value(self) -> bool:
        """Return True: none is optional."""
        return True

    def is_tensor(self) -> bool:
        """Return True: braid has no other values."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Return False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Return False."""
        return False

    def numpy(self) -> Array:
        """Return the array; it shares the value's memory.

        Raises:
            RuntimeError: it is in the memory of a GPU.

        """
        if isinstance(self._buffer, DeviceArray):
            raise WrongUseError(
                f"the value is in the memory of GPU {self._buffer.device}",
                hint="copy it with the package that it is of, as with x.cpu()",
            )
        return self._buffer

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return the array for numpy; raises as `numpy`."""
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> object:
        """Return a capsule that shares the memory."""
        return cast(Any, self._exporter()).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind and the number of the device, as DLPack has them."""
        buffer = self._buffer
        return (CUDA, buffer.device) if isinstance(buffer, DeviceArray) else (1, 0)

    def update_inplace(self, data: "Array | OrtValue") -> None:
        """Copy an array of the same shape and type to the value's memory.

        Raises:
            ValueError: it has another shape or type, or the value cannot be written.
            RuntimeError: the value is in the memory of a GPU.

        """
        source = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(cast(object, source), np.ndarray):
            raise WrongTypeError("data must be a numpy.ndarray or an OrtValue.")
        own = self.numpy()
        if (source.shape, source.dtype) != (own.shape, own.dtype) or not own.flags.writeable:
            raise WrongValueError(
                f"the value has shape {own.shape} and type {own.dtype.name}"
                f"{'' if own.flags.writeable else ' and is read-only'}, the data has "
                f"{source.shape} and {source.dtype.name}"
            )
        np.copyto(own, source)

    def _exporter(self) -> object:
        if not isinstance(self._buffer, DeviceArray):
            return self._buffer
        if self._given is None:
            raise WrongUseError("the value was bound by its address, which DLPack cannot own")
        return self._given


def value_at(
    device_type: object, device_id: int, element_type: object, shape: Sequence[int], address: object
) -> OrtValue:
    """Return a value at an address, whose memory the caller keeps.

    Raises:
        TypeError: the address is no number.

    """
    if not isinstance(address, int):
        raise WrongTypeError(f"buffer_ptr is {address!r:.200}, expected an address")
    dtype, sizes = element_dtype(element_type), tuple(map(int, shape))
    if device_name(device_type) == "cuda":
        return OrtValue(DeviceArray(None, device_id, address, dtype, sizes, None))
    size = math.prod(sizes) * dtype.itemsize
    if not size:
        return OrtValue(np.empty(sizes, dtype))
    memory = (ctypes.c_uint8 * size).from_address(address)
    return OrtValue(np.frombuffer(cast(Any, memory), dtype).reshape(sizes))


def _on_cpu(device_type: object) -> None:
    if device_name(device_type) != "cpu":
        raise WrongUseError(
            f"Can't allocate memory on device {device_type!r}",
            hint="make the array with another package, and give OrtValue.from_dlpack(array)",
        )
