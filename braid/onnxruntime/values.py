"""`OrtValue`: a tensor in this computer's memory, or in that of a GPU."""

import ctypes
import math
import operator
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from braid.onnxruntime.checked_options import whole_number
from braid.onnxruntime.devices import OrtDevice, OrtMemoryInfo, device_name
from braid.onnxruntime.element_types import (
    check_elements,
    element_dtype,
    element_number,
    type_of,
)
from braid.onnxruntime.errors import (
    InvalidArgument,
    NotImplementedStatus,
    WrongTypeError,
    WrongUseError,
)
from braid.runtime.device_arrays import CUDA, Buffer, DeviceArray, array_on_gpu, is_on_gpu

Array = NDArray[Any]


class OrtValue:
    """A tensor that sessions take and give, which shares the memory of its source."""

    def __init__(self, buffer: Buffer, given: object = None) -> None:
        """Use the class methods instead; `given` is the object that exports GPU memory."""
        self._buffer, self._given = buffer, given

    @classmethod
    def ortvalue_from_numpy(
        cls,
        numpy_obj: Array,
        /,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> "OrtValue":
        """Return a value that shares the array's memory, unless its elements are not in order.

        Raises:
            RuntimeError: it is no numeric array, or it is to be on a GPU, where braid allocates no
            memory.

        """
        _on_cpu(device_type)
        if not isinstance(cast(object, numpy_obj), np.ndarray):
            raise WrongUseError(
                "Creation of OrtValues is currently only supported from non-string numpy arrays, "
                f"not from a {type(numpy_obj).__name__}"
            )
        check_elements(numpy_obj.dtype)
        return cls(np.require(numpy_obj, requirements="C"))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(
        cls, data: Array, /, onnx_element_type: int
    ) -> "OrtValue":
        """Return a value with the bytes of the array as elements of another type."""
        dtype = element_dtype(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise WrongUseError(
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
        memory_info: OrtMemoryInfo | None = None,
    ) -> "OrtValue":
        """Return a value whose elements are any numbers; raises as `ortvalue_from_numpy`."""
        _on_cpu(device_type if memory_info is None else memory_info.name.lower())
        return cls(_empty(_sizes(shape), element_dtype(element_type)))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: object) -> NoReturn:
        """Raise NotImplemented: braid has no sparse tensors."""
        raise NotImplementedStatus("OrtValue.ort_value_from_sparse_tensor: give a dense array")

    def as_sparse_tensor(self) -> NoReturn:
        """Raise RuntimeError: the value is dense."""
        raise WrongUseError("OrtValue is not a sparse tensor.")

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
        return type_of(self._buffer.dtype)

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
        """Copy an array of the same type and as many elements to the value's memory.

        Raises:
            RuntimeError: it has another size or type, the value cannot be written, or is in the
                memory of a GPU.
            TypeError: it is neither an array nor a value.

        """
        source = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(cast(object, source), np.ndarray):
            raise WrongTypeError("data must be a numpy.ndarray or an OrtValue.")
        own = self.numpy()
        fits = source.size == own.size and source.dtype.newbyteorder("=") == own.dtype
        if not fits or not own.flags.writeable:
            raise WrongUseError(
                "The input size of numpy arrays does not match the size of the OrtValue: "
                f"the value has shape {own.shape} and type {own.dtype.name}"
                f"{'' if own.flags.writeable else ' and is read-only'}, the data has "
                f"{source.shape} and {source.dtype.name}"
            )
        np.copyto(own, source.reshape(own.shape))

    def _get_c_value(self) -> "OrtValue":
        return self  # programs hand it on to classes of the module `capi`

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
        TypeError: the address, the number of the device, or a size is not an integer.
        RuntimeError: no memory can be there, or a size is negative.

    """
    where = _address(address)
    if whole_number(device_id) is None:
        raise WrongTypeError(f"device_id is {device_id!r:.200}, expected a number")
    dtype, sizes = element_dtype(element_type), _sizes(shape)
    size = math.prod(sizes) * dtype.itemsize
    if size and where <= 0:
        raise WrongUseError(
            f"buffer_ptr is {where}: Pointer to data memory is not valid",
            hint=f"give the address of {size} bytes, such as array.ctypes.data",
        )
    if device_name(device_type) == "cuda":
        return OrtValue(DeviceArray(None, device_id, where, dtype, sizes, None))
    if not size:
        return OrtValue(np.empty(sizes, dtype))
    try:
        memory = (ctypes.c_uint8 * size).from_address(where)
    except (ValueError, OverflowError) as error:
        raise WrongUseError(f"no memory has {size} bytes at address {where}") from error
    return OrtValue(np.frombuffer(cast(Any, memory), dtype).reshape(sizes))


def _address(address: object) -> int:
    try:
        return operator.index(cast(Any, address))
    except TypeError as error:
        raise WrongTypeError(f"buffer_ptr is {address!r:.200}, expected an address") from error


def _sizes(shape: object) -> tuple[int, ...]:
    """Return a shape as sizes. Raises as `value_at`."""
    try:
        sizes = tuple(operator.index(size) for size in cast(Any, shape))
    except TypeError as error:
        raise WrongTypeError(f"shape is {shape!r:.200}, expected whole numbers") from error
    if min(sizes, default=0) < 0:
        raise WrongUseError(f"shape is {list(sizes)}: shape.Size() must be >= 0")
    return sizes


def _empty(sizes: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    try:
        return np.empty(sizes, dtype)
    except (MemoryError, ValueError) as error:
        raise WrongUseError(f"no memory for shape {list(sizes)} of {dtype.name}") from error


def _on_cpu(device_type: object) -> None:
    if device_name(device_type) != "cpu":
        raise WrongUseError(
            f"Can't allocate memory on device {device_type!r}",
            hint="make the array with another package, and give OrtValue.from_dlpack(array)",
        )
