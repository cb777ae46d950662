"""oneDNN's matrix product and convolution through its C interface (oneDNN 3.x), for comparison.

Where the shared library is not installed (`pip install onednn-cpu-gomp`), `available()` is false.
Constants are those of `dnnl_types.h`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

_MAX_DIMS = 12
_CPU, _IN_ORDER = 1, 1
_F32, _I32, _I8, _U8 = 3, 4, 5, 6
_ANY, _AB, _NHWC = 1, 3, 22
_FORWARD_INFERENCE, _DIRECT = 96, 1
_SRC, _WEIGHTS, _DST = 1, 33, 17
_QUERIES = {_SRC: 129, _WEIGHTS: 131, _DST: 133}
_ALLOCATE = ctypes.c_void_p(-1)
_Dims = ctypes.c_int64 * _MAX_DIMS


class _Argument(ctypes.Structure):
    _fields_ = (("index", ctypes.c_int), ("memory", ctypes.c_void_p))


@cache
def _library() -> ctypes.CDLL | None:
    for name in (str(Path(sys.prefix) / "lib" / "libdnnl.so.3"), "libdnnl.so.3"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def available() -> bool:
    """Return whether oneDNN can be measured here."""
    return _library() is not None


def _call(name: str, *arguments: object) -> None:
    library = _library()
    assert library is not None
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} returned status {status}")


def _create(name: str, *arguments: object) -> ctypes.c_void_p:
    """Call a function whose first argument receives the new object."""
    result = ctypes.c_void_p()
    _call(name, ctypes.byref(result), *arguments)
    return result


@cache
def _engine() -> ctypes.c_void_p:
    return _create("dnnl_engine_create", _CPU, ctypes.c_size_t(0))


@cache
def _stream() -> ctypes.c_void_p:
    return _create("dnnl_stream_create", _engine(), ctypes.c_uint(_IN_ORDER))


def _descriptor(shape: Sequence[int], tag: int, kind: int = _F32) -> ctypes.c_void_p:
    return _create(
        "dnnl_memory_desc_create_with_tag", len(shape), _Dims(*shape), kind, ctypes.c_int(tag)
    )


def _runner(primitive_descriptor: ctypes.c_void_p) -> Callable[[], None]:
    """Allocates the arguments in the layouts that oneDNN chose; the call runs once."""
    library = _library()
    assert library is not None
    query = library.dnnl_primitive_desc_query_md
    query.restype = ctypes.c_void_p
    size_of = library.dnnl_memory_desc_get_size
    size_of.restype = ctypes.c_size_t
    arguments = (_Argument * len(_QUERIES))()
    for argument, (index, what) in zip(arguments, _QUERIES.items(), strict=True):
        layout = ctypes.c_void_p(query(primitive_descriptor, what, 0))
        memory = _create("dnnl_memory_create", layout, _engine(), _ALLOCATE)
        handle = ctypes.c_void_p()
        _call("dnnl_memory_get_data_handle", memory, ctypes.byref(handle))
        values = np.full(-(-size_of(layout) // 4), 0.5, np.float32)
        ctypes.memmove(handle, values.ctypes.data, size_of(layout))
        argument.index, argument.memory = index, memory.value
    primitive = _create("dnnl_primitive_create", primitive_descriptor)

    def run() -> None:
        _call("dnnl_primitive_execute", primitive, _stream(), len(arguments), arguments)

    run()
    return run


def matmul(m: int, n: int, k: int, *, of_bytes: bool = False) -> Callable[[], None]:
    """Return a matmul of m × k and k × n, the right operand in the layout that oneDNN prefers.

    Of f32, or `of_bytes` of unsigned and signed bytes with sums in i32.
    """
    kinds = (_U8, _I8, _I32) if of_bytes else (_F32, _F32, _F32)
    left, right, result = (
        _descriptor((m, k), _AB, kinds[0]),
        _descriptor((k, n), _ANY, kinds[1]),
        _descriptor((m, n), _AB, kinds[2]),
    )
    return _runner(
        _create("dnnl_matmul_primitive_desc_create", _engine(), left, right, None, result, None)
    )


def convolution(
    x: Sequence[int], w: Sequence[int], y: Sequence[int], stride: int, pad: int
) -> Callable[[], None]:
    """Direct convolution of NHWC images (shapes are logical), the weight as oneDNN prefers.

    A weight of five dims is one with groups.
    """
    step, none, edge = _Dims(stride, stride), _Dims(0, 0), _Dims(pad, pad)
    return _runner(
        _create(
            "dnnl_convolution_forward_primitive_desc_create",
            _engine(), _FORWARD_INFERENCE, _DIRECT,
            _descriptor(x, _NHWC), _descriptor(w, _ANY), None, _descriptor(y, _NHWC),
            step, none, edge, edge, None,
        )
    )  # fmt: skip
