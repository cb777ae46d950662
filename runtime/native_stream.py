"""Streams of the native runtime on numpy arrays: requests go in, results come out in order."""

import ctypes
import math
import weakref
from collections import deque
from collections.abc import Sequence
from copy import copy
from ctypes import POINTER, c_int64
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.runtime.buffers import check_count, check_input, host_arrays
from braid.runtime.device_arrays import Buffer
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.native import NativeContext, NativeModel, addresses
from braid.runtime.native_abi import CStreamOptions, last_error, load_library
from braid.runtime.traces import Observed
from braid.support.errors import BraidError

Array = NDArray[Any]


class StreamLostError(BraidError):
    """A launch is beyond its deadline: the stream has no more results."""


class StreamEndedError(BraidError):
    """The stream was closed, or has ended with a request that failed."""


class _Result(IntEnum):
    """`braid_stream_result`."""

    DONE = 0
    FAILED = 1
    EMPTY = 2
    LATER = 3
    LOST = 4


@dataclass(frozen=True)
class StageTimes:
    """A stage of a stream: its function and device, and how often and long it has run.

    `expected_seconds` is the time of one run that was predicted at compilation, 0 for unknown.
    `replicas` are the devices that take turns with `device`; their runs count as well.
    """

    name: str
    device: str
    expected_seconds: float
    count: int
    seconds: float
    replicas: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Request:
    inputs: Sequence[Array]
    outputs: Sequence[Array]


class ProfileTotals:
    """The sums of what the closed streams of a model have counted."""

    def __init__(self, model: NativeModel) -> None:
        """Begin with zeros."""
        self.counts = np.zeros(max(1, len(model.counter_names)), np.uint64)
        self.times = np.zeros_like(self.counts)

    def add(self, handle: int) -> None:
        """Add what an open stream has counted so far."""
        load_library().braid_stream_profile(handle, self.counts.ctypes.data, self.times.ctypes.data)

    def copy(self) -> "ProfileTotals":
        """Return a copy of the numbers, which then counts on its own."""
        other = copy(self)
        other.counts, other.times = self.counts.copy(), self.times.copy()
        return other

    def reset(self) -> None:
        """Begin with zeros again."""
        self.counts[:] = 0
        self.times[:] = 0


_kept: list[object] = []
"""The requests and models that launches beyond their deadlines may still use."""


class NativeStream:
    """An open stream: the native handle, and the arrays of the requests that are under way."""

    def __init__(
        self,
        model: NativeModel,
        threads: int,
        deadline: float | None,
        goes_on: bool,
        totals: ProfileTotals,
    ) -> None:
        """Open a stream, whose profile goes to `totals` when it is closed.

        Raises `BraidError` where there is no memory, or no more thread.
        """
        library = load_library()
        nanoseconds = 0 if deadline is None else max(1, round(1e9 * deadline))
        options = CStreamOptions(threads, nanoseconds, goes_on)
        handle: int | None = library.braid_stream_open(model.handle, ctypes.byref(options))
        if handle is None:
            raise last_error()
        self.model = model
        self.capacity: int = library.braid_stream_capacity(handle)
        self._handle = handle
        self._observed = Observed()
        self._under_way: deque[_Request] = deque()
        opened = any(-1 in spec.shape for spec in (*model.inputs, *model.outputs))
        self._shapes = NativeContext(model, 1) if opened else None
        self._finalizer = weakref.finalize(self, _close, handle, self._under_way, model, totals)

    def prepare(self, inputs: Sequence[Buffer], *, copy: bool) -> list[Array]:
        """Return inputs in the form that a request takes, copied if `copy` is set.

        Raises:
            BraidError: a wrong number of arrays, dtype or shape, or sizes at which the model does
                not run.

        """
        specs = self.model.inputs
        check_count("input", len(inputs), len(specs))
        given = host_arrays(inputs, "a stream")
        arrays = [check_input(spec, x) for spec, x in zip(specs, given, strict=True)]
        if self._shapes is not None:
            self._shapes.shapes_for(arrays)
        if copy:
            pairs = zip(arrays, given, strict=True)
            arrays = [a.copy() if np.may_share_memory(a, x) else a for a, x in pairs]
        return arrays

    def push(self, inputs: Sequence[Array]) -> None:
        """Hand in what `prepare` gave; waits while `capacity` requests are under way.

        Raises:
            StreamLostError, StreamEndedError: there are no more results.

        """
        library = load_library()
        outputs = [np.empty(*pair) for pair in self._ports(inputs)]
        shapes: Any = None
        if self._shapes is not None:
            rows = [(c_int64 * max(1, x.ndim))(*x.shape) for x in inputs]
            shapes = (POINTER(c_int64) * max(1, len(rows)))(*rows)
        self._under_way.append(_Request(inputs, outputs))
        status: int = library.braid_stream_push(
            self._open_handle(), addresses(inputs), addresses(outputs), shapes
        )
        if status != 0:
            self._under_way.pop()
            raise StreamEndedError(last_error().message)

    def pop(self, timeout: float) -> list[Array] | None:
        """Take the outputs of the oldest request; None if they are not there in this many seconds.

        Raises:
            BraidError: the request has failed.
            StreamLostError: a launch is beyond its deadline; there are no more results.
            StreamEndedError: no request is under way.

        """
        library = load_library()
        result = _Result(library.braid_stream_pop(self._open_handle(), round(1e9 * timeout)))
        match result:
            case _Result.LATER:
                return None
            case _Result.EMPTY:
                raise StreamEndedError("the stream has ended")
            case _Result.LOST:
                raise StreamLostError(last_error().message)
            case _Result.FAILED:
                error = last_error()
                if self._under_way:
                    self._under_way.popleft()
                raise error
            case _Result.DONE:
                request = self._under_way.popleft()
                return [self._filled(i, buffer) for i, buffer in enumerate(request.outputs)]

    def stages(self) -> list[StageTimes]:
        """Return the stages of the model and their times so far; one for a model without."""
        described = self.model.descriptor
        stages = [described.stages[i] for i in range(described.stage_count)]
        functions = [described.functions[stage.function] for stage in stages]
        found: list[StageTimes] = []
        for i, (stage, function) in enumerate(zip(stages, functions, strict=True)):
            numbers = [stage.function, *(stage.replicas[k] for k in range(stage.replica_count))]
            devices = [described.functions[number].device for number in numbers]
            names = [described.devices[device].name.decode() for device in devices]
            expected = stage.nanoseconds * 1e-9
            times = self._times(i)
            found.append(
                StageTimes(function.name.decode(), names[0], expected, *times, tuple(names[1:]))
            )
        return found or [StageTimes("main", "", 0.0, *self._times(0))]

    def add_profile(self, totals: ProfileTotals) -> None:
        """Add what its stages have counted; nothing where it is closed, and has done so."""
        if self._finalizer.alive:
            totals.add(self._handle)

    def reset_profile(self) -> None:
        """Count from now on."""
        if self._finalizer.alive:
            load_library().braid_stream_profile_reset(self._handle)

    def observe(self, observed: Observed) -> None:
        """Attach an observer to its requests, none of which is in progress."""
        observed.attach_to_stream(self._open_handle())
        self._observed = observed

    def close(self) -> None:
        """End the stream: waits for launches that are running, as long as their deadline says."""
        self._finalizer()

    def _times(self, stage: int) -> tuple[int, float]:
        count, nanoseconds = c_int64(), c_int64()
        status: int = load_library().braid_stream_stage(
            self._open_handle(), stage, ctypes.byref(count), ctypes.byref(nanoseconds)
        )
        if status != 0:
            raise last_error()
        return count.value, nanoseconds.value * 1e-9

    def _open_handle(self) -> int:
        if not self._finalizer.alive:
            raise StreamEndedError("the stream has been closed")
        return self._handle

    def _ports(self, inputs: Sequence[Array]) -> list[tuple[tuple[int, ...], Any]]:
        """Return the shape and dtype of the buffer of each output."""
        dtypes = [numpy_dtype(spec.dtype) for spec in self.model.outputs]
        if self._shapes is None:
            shapes = [spec.bound for spec in self.model.outputs]
        else:
            shapes = self._shapes.shapes_for(inputs)
        return list(zip(shapes, dtypes, strict=True))

    def _filled(self, index: int, buffer: Array) -> Array:
        spec = self.model.outputs[index]
        if -1 not in spec.shape or self.model.shapes_results:
            return buffer
        sizes = load_library().braid_stream_output_shape(self._open_handle(), index)
        shape = tuple(int(sizes[d]) for d in range(len(spec.shape)))
        return buffer.reshape(-1)[: math.prod(shape)].reshape(shape)


def _close(
    handle: int, under_way: "deque[_Request]", model: NativeModel, totals: ProfileTotals
) -> None:
    totals.add(handle)
    if load_library().braid_stream_close(handle) != 0:
        _kept.append((under_way, model))
