"""The C side of `braid/runtime.h` in ctypes: structs, signatures, and finding the library.

A field that is a pointer in C is annotated as the sequence that it indexes like; it has no length.
"""

import ctypes
import functools
import os
import weakref
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import braid.runtime
from braid.runtime.interruption import POLL
from braid.support.errors import BraidError, missing_file_hint
from braid.support.shared_objects import check_sources, declare, find_built

LIBRARY_NAME = "libbraid_runtime.so"


class CTensor(ctypes.Structure):
    """`braid_tensor_v2`."""

    name: bytes
    dtype: int
    rank: int
    shape: Sequence[int]
    bound: Sequence[int]
    dims: Sequence[int]
    _fields_ = (
        ("name", c_char_p),
        ("dtype", c_int64),
        ("rank", c_int64),
        ("shape", POINTER(c_int64)),
        ("bound", POINTER(c_int64)),
        ("dims", POINTER(c_int64)),
    )


class CDim(ctypes.Structure):
    """`braid_dim_v2`."""

    name: bytes
    padded_from: int
    _fields_ = (("name", c_char_p), ("padded_from", c_int64))


class CVariant(ctypes.Structure):
    """`braid_variant_v2`."""

    sizes: Sequence[int]
    _fields_ = (
        ("sizes", POINTER(c_int64)),
        ("output_shapes", POINTER(POINTER(c_int64))),
        ("run", c_void_p),
    )


class CDevice(ctypes.Structure):
    """`braid_device_v1`."""

    name: bytes
    plugin: bytes
    weights_offset: int
    weights_bytes: int
    code_count: int
    _fields_ = (
        ("name", c_char_p),
        ("plugin", c_char_p),
        ("weights_offset", c_int64),
        ("weights_bytes", c_int64),
        ("code_count", c_int64),
        ("codes", c_void_p),
    )


class CFunction(ctypes.Structure):
    """`braid_function_v1`."""

    name: bytes
    device: int
    input_count: int
    output_count: int
    bytes: Sequence[int]
    arena_bytes: int
    nanoseconds: int
    on_caller: int
    _fields_ = (
        ("name", c_char_p),
        ("device", c_int64),
        ("input_count", c_int64),
        ("output_count", c_int64),
        ("bytes", POINTER(c_int64)),
        ("arena_bytes", c_int64),
        ("nanoseconds", c_int64),
        ("run", c_void_p),
        ("on_caller", c_int64),
    )


class CStage(ctypes.Structure):
    """`braid_stage_v1`."""

    function: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    nanoseconds: int
    replica_count: int
    replicas: Sequence[int]
    _fields_ = (
        ("function", c_int64),
        ("inputs", POINTER(c_int64)),
        ("outputs", POINTER(c_int64)),
        ("nanoseconds", c_int64),
        ("replica_count", c_int64),
        ("replicas", POINTER(c_int64)),
    )


class CChannel(ctypes.Structure):
    """`braid_channel_v1`."""

    bytes: int
    slots: int
    _fields_ = (("bytes", c_int64), ("slots", c_int64))


class CStreamOptions(ctypes.Structure):
    """`braid_stream_options`."""

    _fields_ = (("threads", c_int64), ("deadline", c_int64), ("goes_on", c_int64))


class CValueSize(ctypes.Structure):
    """`braid_value_size_v1`."""

    input: int
    element: int
    dim: int
    _fields_ = (("input", c_int64), ("element", c_int64), ("dim", c_int64))


class COpen(ctypes.Structure):
    """`braid_open_v1`, of which Python reads only the sizes that are in inputs."""

    value_count: int
    values: Sequence[CValueSize]
    _fields_ = (
        ("others", c_int64 * 9),
        ("value_count", c_int64),
        ("values", POINTER(CValueSize)),
        ("input_shapes", c_void_p),
    )


class CModel(ctypes.Structure):
    """`braid_model_v2`."""

    abi_version: int
    input_count: int
    inputs: Sequence[CTensor]
    output_count: int
    outputs: Sequence[CTensor]
    arena_bytes: int
    arena_align: int
    feature_count: int
    features: Sequence[bytes]
    counter_count: int
    counter_names: Sequence[bytes]
    run: int
    dim_count: int
    dims: Sequence[CDim]
    variant_count: int
    variants: Sequence[CVariant]
    weights_bytes: int
    device_count: int
    devices: Sequence[CDevice]
    function_count: int
    functions: Sequence[CFunction]
    requests: int
    stage_count: int
    stages: Sequence[CStage]
    channel_count: int
    channels: Sequence[CChannel]
    open: int | None
    expanded_bytes: int
    expansion_count: int
    expansions: int | None
    phases: int | None
    specialization_count: int
    """Not there before version 15, nor is the next one."""
    specializations: int | None
    state_count: int
    """Not there before version 16, nor is the next one."""
    states: int | None
    _fields_ = (
        ("abi_version", c_int64),
        ("input_count", c_int64),
        ("inputs", POINTER(CTensor)),
        ("output_count", c_int64),
        ("outputs", POINTER(CTensor)),
        ("arena_bytes", c_int64),
        ("arena_align", c_int64),
        ("feature_count", c_int64),
        ("features", POINTER(c_char_p)),
        ("counter_count", c_int64),
        ("counter_names", POINTER(c_char_p)),
        ("run", c_void_p),
        ("dim_count", c_int64),
        ("dims", POINTER(CDim)),
        ("variant_count", c_int64),
        ("variants", POINTER(CVariant)),
        ("weights_bytes", c_int64),
        ("device_count", c_int64),
        ("devices", POINTER(CDevice)),
        ("function_count", c_int64),
        ("functions", POINTER(CFunction)),
        ("requests", c_int64),
        ("stage_count", c_int64),
        ("stages", POINTER(CStage)),
        ("channel_count", c_int64),
        ("channels", POINTER(CChannel)),
        ("open", c_void_p),
        ("expanded_bytes", c_int64),
        ("expansion_count", c_int64),
        ("expansions", c_void_p),
        ("phases", c_void_p),
        ("specialization_count", c_int64),
        ("specializations", c_void_p),
        ("state_count", c_int64),
        ("states", c_void_p),
    )


_SIGNATURES = {
    "braid_last_error": (c_char_p, ()),
    "braid_cpu_supports": (c_int, (c_char_p,)),
    "braid_digest": (c_uint64, (c_void_p, c_size_t)),
    "braid_map_file": (c_void_p, (c_char_p, POINTER(c_size_t))),
    "braid_unmap_file": (None, (c_void_p, c_size_t)),
    "braid_model_open": (c_void_p, (c_char_p,)),
    "braid_model_from_artifact": (c_void_p, (c_void_p, c_size_t, c_char_p)),
    "braid_model_from_memory": (c_void_p, (c_char_p, c_size_t, c_void_p, c_size_t)),
    "braid_model_from_descriptor": (c_void_p, (c_void_p, c_void_p, c_size_t)),
    "braid_model_describe": (POINTER(CModel), (c_void_p,)),
    "braid_model_close": (None, (c_void_p,)),
    "braid_context_create": (c_void_p, (c_void_p, c_int64)),
    "braid_context_set_input_shape": (c_int, (c_void_p, c_int64, POINTER(c_int64))),
    "braid_context_set_input_values": (c_int, (c_void_p, c_int64, c_void_p)),
    "braid_context_output_shape": (POINTER(c_int64), (c_void_p, c_int64)),
    "braid_context_output": (c_void_p, (c_void_p, c_int64)),
    "braid_context_set_poll": (None, (c_void_p, POLL)),
    "braid_context_run": (c_int, (c_void_p, POINTER(c_void_p), POINTER(c_void_p))),
    "braid_context_trim": (None, (c_void_p,)),
    "braid_context_profile_counts": (POINTER(c_uint64), (c_void_p,)),
    "braid_context_profile_times": (POINTER(c_uint64), (c_void_p,)),
    "braid_context_profile_sizes": (
        c_int64,
        (c_void_p, c_int64, POINTER(c_int64), POINTER(c_uint64), POINTER(c_uint64)),
    ),
    "braid_context_profile_reset": (None, (c_void_p,)),
    "braid_context_device_time": (c_int64, (c_void_p, c_int64)),
    "braid_context_close": (None, (c_void_p,)),
    "braid_stream_open": (c_void_p, (c_void_p, POINTER(CStreamOptions))),
    "braid_stream_capacity": (c_int64, (c_void_p,)),
    "braid_stream_push": (
        c_int,
        (c_void_p, POINTER(c_void_p), POINTER(c_void_p), POINTER(POINTER(c_int64))),
    ),
    "braid_stream_pop": (c_int, (c_void_p, c_int64)),
    "braid_stream_output_shape": (POINTER(c_int64), (c_void_p, c_int64)),
    "braid_stream_profile": (c_int, (c_void_p, c_void_p, c_void_p)),
    "braid_stream_profile_reset": (None, (c_void_p,)),
    "braid_stream_stage": (c_int, (c_void_p, c_int64, POINTER(c_int64), POINTER(c_int64))),
    "braid_stream_close": (c_int, (c_void_p,)),
    "braid_device_register": (c_int, (c_char_p, c_char_p)),
    "braid_device_emulate": (None, (c_int,)),
}


def find_library() -> Path:
    """Return the path of the native runtime's shared object; see `find_runtime`."""
    return find_runtime(LIBRARY_NAME)


def find_headers() -> Path:
    """Return the directory of the native runtime's C headers, which is next to the Python code.

    Raises:
        BraidError: it has none.

    """
    places = [Path(directory) / "native" / "include" for directory in braid.runtime.__path__]
    found = [place.resolve() for place in places if place.is_dir()]
    if not found:
        raise BraidError(
            "the headers of the native runtime are not installed", hint="install braid again"
        )
    return found[0]


def find_runtime(name: str) -> Path:
    """Return the path of a file of the native runtime.

    Raises:
        BraidError: it has none.

    """
    return find_built(name, braid.runtime.__path__)


@functools.cache
def load_library() -> ctypes.CDLL:
    """Load the native runtime and declare its functions.

    Raises:
        BraidError: it is not built, or cannot be loaded, or was built from other sources.

    """
    path = find_library()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise BraidError(
            f"cannot load the native runtime: {error}", hint="install braid again"
        ) from error
    check_sources(library, "braid_runtime_sources", braid.runtime.__path__)
    declare(library, _SIGNATURES)
    return library


def file_name(path: str | os.PathLike[str]) -> bytes:
    """Return the path as C has it. Raises BraidError for a name that no file can have."""
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise BraidError(f"no file has such a name: {path!r}", hint=str(error)) from error
    if b"\0" in name:
        raise BraidError(f"no file has such a name: {path!r}", hint="it holds a zero byte")
    return name


def map_file(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Map an artifact for reading, until the last view of it is released. No descriptor stays open.

    Raises:
        BraidError: it cannot be opened, or is too short or no regular file.

    """
    library = load_library()
    size = c_size_t()
    address: int | None = library.braid_map_file(file_name(path), ctypes.byref(size))
    if address is None:
        raise last_error(hint=missing_file_hint(path) or "compile the model again")
    memory = (ctypes.c_uint8 * size.value).from_address(address)
    # At exit the system unmaps; until then somebody may hold a view.
    weakref.finalize(memory, library.braid_unmap_file, address, size.value).atexit = False
    data = np.ctypeslib.as_array(memory)
    data.flags.writeable = False
    return data


def last_error(*, hint: str | None = None) -> BraidError:
    """Return the calling thread's last failure in the native runtime as an exception."""
    return BraidError(load_library().braid_last_error().decode(errors="replace"), hint=hint)
