"""The shared object of `solvers/native`, and the arrays that its C code reads."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import braid.solvers
from braid.support.shared_objects import check_sources, declare, find_built

LIBRARY_NAME = "libbraid_solvers.so"
_OUT_OF_MEMORY = -(1 << 31)

Signatures = Mapping[str, tuple[Any, Sequence[Any]]]
"""Result and argument types of functions by name."""


class CLists(ctypes.Structure):
    """`braid_lists`: for each of some things a list of numbers."""

    _fields_ = (("begin", c_void_p), ("item", c_void_p))


class Arrays:
    """Makes the arrays that a struct points to, and owns them."""

    def __init__(self) -> None:
        self._kept: list[NDArray[np.generic]] = []

    def numbers(self, items: Sequence[float], dtype: type[np.generic]) -> int:
        """Return the address of an array."""
        array = np.array(items, dtype)
        self._kept.append(array)
        return array.ctypes.data

    def lists(self, lists: Sequence[Sequence[int]]) -> CLists:
        """Return the lists, one after the other."""
        begins = np.cumsum([0, *map(len, lists)]).tolist()
        items = [item for each in lists for item in each]
        return CLists(self.numbers(begins, np.int32), self.numbers(items, np.int32))


def find_library() -> Path:
    """Return the path of the shared object. Raises BraidError where it is not built."""
    return find_built(LIBRARY_NAME, braid.solvers.__path__)


@cache
def _open() -> ctypes.CDLL:
    library = ctypes.CDLL(str(find_library()))
    check_sources(library, "braid_solvers_sources", braid.solvers.__path__)
    return library


def library_of(signatures: Signatures) -> Callable[[], ctypes.CDLL]:
    """Return what loads the shared object, with functions declared; raises BraidError, OSError.

    A function that finds no memory raises MemoryError.
    """

    @cache
    def load() -> ctypes.CDLL:
        library = _open()
        declare(library, signatures)
        for name, (result, _) in signatures.items():
            if result is not None:
                getattr(library, name).errcheck = _with_memory
        return library

    return load


def _with_memory(result: Any, *_: object) -> Any:
    if result in (None, _OUT_OF_MEMORY):
        raise MemoryError("no memory for a solver")
    return result
