"""Ask oneDNN which layout it prefers for its weights, and whether it has a primitive at all."""

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from braid.lowering.cpu.library.calls import Call, CallFailedError, make_calls
from braid.lowering.cpu.library.primitives import (
    ANY,
    WEIGHTS_MD,
    Primitive,
    Program,
    Tensor,
    description_of,
)
from braid.support.shared_objects import ONEDNN, loaded_library

_STRIDES, _BLOCK_COUNT, _BLOCKS, _BLOCK_DIMS = 14, 263, 264, 265


@lru_cache(maxsize=1 << 12)
def preferred_weight(primitive: Primitive) -> str | None:
    """Return the tag of the library's choice for weight 0; None where it has no primitive or no
    tag.
    """
    library = loaded_library(ONEDNN)
    if library is None:
        return None
    weights = (replace(primitive.weights[0], tag=ANY), *primitive.weights[1:])
    asked = description_of(replace(primitive, weights=weights))
    found = asked.slot()
    query = Call("dnnl_primitive_desc_query_md", (asked.description, WEIGHTS_MD, 0), found)
    try:
        values = make_calls(library, [*asked.calls, query], asked.slots)
    except CallFailedError:
        return None
    descriptor = values[found.number]
    shape = primitive.weights[0].shape
    tag = tag_of(library, ctypes.c_void_p(descriptor), shape)
    _release(library, asked, values)
    return tag if is_supported(replace(primitive, weights=(Tensor(shape, tag),))) else None


@lru_cache(maxsize=1 << 12)
def is_supported(primitive: Primitive) -> bool:
    """Return whether the library makes the primitive."""
    library = loaded_library(ONEDNN)
    if library is None:
        return False
    program = description_of(primitive)
    try:
        values = make_calls(library, program.calls, program.slots)
    except CallFailedError:
        return False
    _release(library, program, values)
    return True


def _release(library: ctypes.CDLL, program: Program, values: Sequence[int | None]) -> None:
    destroy = library["dnnl_primitive_desc_destroy"]
    destroy.restype = ctypes.c_int
    destroy(ctypes.c_void_p(values[program.description.number]))


def tag_of(library: ctypes.CDLL, descriptor: ctypes.c_void_p, shape: Sequence[int]) -> str:
    """Return the tag of a blocked descriptor: its outer dims by their strides, then the blocks.

    Of dims with equal strides all but one have extent 1, and are placed inside of that one:
    elsewhere they would have other strides, for which the library has slow kernels only.
    """
    lists = [ctypes.POINTER(ctypes.c_int64)() for _ in range(3)]
    count = ctypes.c_int()
    query = library["dnnl_memory_desc_query"]
    query.restype = ctypes.c_int
    query(descriptor, _BLOCK_COUNT, ctypes.byref(count))
    for what, place in zip((_STRIDES, _BLOCKS, _BLOCK_DIMS), lists, strict=True):
        query(descriptor, what, ctypes.byref(place))
    strides, sizes, dims = lists
    blocks = [(dims[i], sizes[i]) for i in range(count.value)]
    extents = list(shape)
    for dim, size in blocks:
        extents[dim] = -(-extents[dim] // size)
    outer = sorted(range(len(shape)), key=lambda dim: (-strides[dim], extents[dim] == 1, dim))
    letters = "abcdefghijkl"
    blocked = {dim for dim, _ in blocks}
    head = "".join(letters[dim].upper() if dim in blocked else letters[dim] for dim in outer)
    return head + "".join(f"{size}{letters[dim]}" for dim, size in blocks)
