"""The C side of `solvers/native/src/chip_order.h` in ctypes: structs, signatures, the library."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint64, c_void_p
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import braid.solvers
from braid.support.shared_objects import find_built

LIBRARY_NAME = "libbraid_solvers.so"
OUT_OF_MEMORY = -(1 << 31)


class CLists(ctypes.Structure):
    """`braid_lists`: for each of some things a list of numbers."""

    _fields_ = (("begin", c_void_p), ("item", c_void_p))


class CChip(ctypes.Structure):
    """`braid_chip`."""

    _fields_ = (
        ("ops", c_int32),
        ("values", c_int32),
        ("units", c_int32),
        ("load_unit", c_int32),
        ("store_unit", c_int32),
        ("capacity", c_int64),
        ("before", CLists),
        ("after", CLists),
        ("stages", CLists),
        ("times", c_void_p),
        ("waits", c_void_p),
        ("reads", CLists),
        ("makes", CLists),
        ("over", CLists),
        ("users", CLists),
        ("sources", CLists),
        ("size", c_void_p),
        ("load", c_void_p),
        ("store", c_void_p),
        ("output", c_void_p),
        ("present", c_void_p),
        ("kept", c_void_p),
        ("moves", c_void_p),
    )


class CAnnealing(ctypes.Structure):
    """`braid_annealing`."""

    done: int
    value: int
    _fields_ = (
        ("random", c_uint64),
        ("hot", c_double),
        ("cold", c_double),
        ("moves", c_int64),
        ("done", c_int64),
        ("target", c_int64),
        ("value", c_int64),
        ("best", c_void_p),
    )


class Arrays:
    """Makes the arrays that a struct points to, and owns them."""

    def __init__(self) -> None:
        self._kept: list[NDArray[np.generic]] = []

    def numbers(self, items: Sequence[int], dtype: type[np.generic]) -> int:
        """The address of an array."""
        array = np.array(items, dtype)
        self._kept.append(array)
        return array.ctypes.data

    def lists(self, lists: Sequence[Sequence[int]]) -> CLists:
        """The lists, one behind the other."""
        begins = np.cumsum([0, *map(len, lists)]).tolist()
        items = [item for each in lists for item in each]
        return CLists(self.numbers(begins, np.int32), self.numbers(items, np.int32))


_SIGNATURES = {
    "braid_timeline_open": (c_void_p, (POINTER(CChip), c_int32)),
    "braid_timeline_close": (None, (c_void_p,)),
    "braid_timeline_reset": (c_int64, (c_void_p, c_void_p)),
    "braid_anneal": (c_int32, (c_void_p, POINTER(CAnnealing), c_int64)),
}


def find_library() -> Path:
    """Return the path of the shared object. Raises BraidError where it is not built."""
    return find_built(LIBRARY_NAME, braid.solvers.__path__)


@cache
def load_library() -> ctypes.CDLL:
    """Load the shared object and declare its functions. Raises BraidError, OSError."""
    library = ctypes.CDLL(str(find_library()))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library
