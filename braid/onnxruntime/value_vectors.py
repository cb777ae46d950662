"""Several values as one object, and copies between them."""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from braid.onnxruntime.errors import WrongTypeError, WrongUseError
from braid.onnxruntime.values import OrtValue


class OrtValueVector:
    """Values in order, which runs read and append to."""

    def __init__(self) -> None:
        """Begin empty."""
        self._values: list[OrtValue] = []

    def push_back(self, value: OrtValue) -> None:
        """Append a value."""
        if not isinstance(cast(object, value), OrtValue):
            raise WrongTypeError(f"a {type(value).__name__} is appended, expected an OrtValue")
        self._values.append(value)

    def reserve(self, size: int) -> None:
        """Do nothing: lists of Python grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Do nothing, as `reserve`."""

    def __len__(self) -> int:
        """Return how many values there are."""
        return len(self._values)

    def __getitem__(self, index: int) -> OrtValue:
        """Return a value. Raises IndexError if there is none."""
        return self._values[operator.index(index)]

    def __iter__(self) -> Iterator[OrtValue]:
        """Yield the values."""
        return iter(self._values)

    def element_type_at(self, index: int) -> int:
        """Return the number of the element type of a value in `onnx.TensorProto`."""
        return self[index].element_type()

    def dlpack_at(self, index: int) -> object:
        """Return a capsule of DLPack that shares the memory of a value."""
        return self[index].__dlpack__()

    def to_dlpacks(self, to_tensor: Callable[[object], object] | None) -> list[Any]:
        """Return a capsule of each value, or the result of a function for it."""
        capsules = (value.__dlpack__() for value in self)
        return list(capsules) if to_tensor is None else [to_tensor(each) for each in capsules]


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: object = None) -> None:
    """Copy values to others of the same types and sizes.

    Raises:
        RuntimeError: their number is wrong, or one does not fit or is on a GPU.
        TypeError: one is not a value.

    """
    for each in (*src, *dst):
        if not isinstance(cast(object, each), OrtValue):
            raise WrongTypeError(f"a {type(each).__name__} is copied, expected an OrtValue")
    if not src or len(src) != len(dst):
        raise WrongUseError(
            "Invalid arguments provided to CopyTensors: "
            f"{len(src)} values are copied to {len(dst)}, expected as many, and at least one"
        )
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)
