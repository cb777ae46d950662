"""The C side of `solvers/native/src/chip_order.h` in ctypes: structs and signatures."""

import ctypes
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint64, c_void_p
from functools import cache

from braid.solvers.library import CLists, load
from braid.solvers.library import find_library as find_library


class CChip(ctypes.Structure):
    """`braid_chip`."""

    _fields_ = (
        ("ops", c_int32),
        ("values", c_int32),
        ("units", c_int32),
        ("load_unit", c_int32),
        ("store_unit", c_int32),
        ("capacity", c_int64),
        ("slots", c_void_p),
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


_SIGNATURES = {
    "braid_timeline_open": (c_void_p, (POINTER(CChip), c_int32)),
    "braid_timeline_close": (None, (c_void_p,)),
    "braid_timeline_reset": (c_int64, (c_void_p, c_void_p)),
    "braid_anneal": (c_int32, (c_void_p, POINTER(CAnnealing), c_int64)),
}


@cache
def load_library() -> ctypes.CDLL:
    """Load the shared object and declare its functions. Raises BraidError, OSError."""
    return load(_SIGNATURES)
