"""Traces of runs, and hardware counters during them: `braid/trace.h` in Python."""

import ctypes
import os
import weakref
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from braid.runtime.native_abi import file_name, last_error, load_library
from braid.support.shared_objects import declare

if TYPE_CHECKING:
    from braid.runtime.native import NativeModel


TRACED_EVENTS = 1 << 20
"""How many events a trace keeps unless a caller says otherwise."""


class CEvent(ctypes.Structure):
    """`braid_trace_event`."""

    kind: int
    index: int
    value: int
    thread: int
    begin: int
    end: int
    _fields_ = (
        *((name, c_int64) for name in ("kind", "index", "value", "thread")),
        ("begin", c_uint64),
        ("end", c_uint64),
    )


_SIGNATURES = {
    "braid_trace_create": (c_void_p, (c_void_p, c_int64)),
    "braid_context_set_trace": (c_int, (c_void_p, c_void_p)),
    "braid_stream_set_trace": (c_int, (c_void_p, c_void_p)),
    "braid_trace_count": (c_int64, (c_void_p,)),
    "braid_trace_dropped": (c_int64, (c_void_p,)),
    "braid_trace_get": (POINTER(CEvent), (c_void_p, c_int64)),
    "braid_trace_reset": (None, (c_void_p,)),
    "braid_trace_write": (c_int, (c_void_p, c_char_p)),
    "braid_trace_close": (None, (c_void_p,)),
    "braid_counter_count": (c_int64, ()),
    "braid_counter_name": (c_char_p, (c_int64,)),
    "braid_counters_create": (c_void_p, (c_void_p,)),
    "braid_context_set_counters": (c_int, (c_void_p, c_void_p)),
    "braid_counters_values": (POINTER(c_double), (c_void_p, c_int64)),
    "braid_counters_reason": (c_char_p, (c_void_p, c_int64)),
    "braid_counters_close": (None, (c_void_p,)),
}


@cache
def tracing_library() -> ctypes.CDLL:
    """Load the native runtime with the functions of `braid/trace.h` declared.

    Raises:
        BraidError: as `load_library`.

    """
    library = load_library()
    declare(library, _SIGNATURES)
    return library


class EventKind(Enum):
    """`braid_trace_kind`, in its order."""

    RUN = "run"
    KERNEL = "kernel"
    PART = "part"
    LAUNCH = "launch"
    STAGE = "stage"


@dataclass(frozen=True)
class TraceEvent:
    """Something that took from `begin` to `end`, in seconds of the system's monotonic clock.

    `name` is the names of a kernel's ops (also for one thread's part of it), or the function of a
    launch or a stage; it is empty for a run. `place` is the device of a launch, else the system's
    number of the thread. `request` is the number of a stage's request.
    """

    kind: EventKind
    name: str
    layouts: str
    place: str
    begin: float
    end: float
    request: int | None = None

    @property
    def seconds(self) -> float:
        """Return how long it took."""
        return self.end - self.begin


@dataclass(frozen=True)
class Observed:
    """The observer of the runs of a context; None for none."""

    trace: "Trace | None" = None
    counters: "HardwareCounters | None" = None

    def attach_to_context(self, context: int) -> None:
        """Let the next runs of the context with this handle be observed.

        Raises:
            BraidError: it belongs to another model.

        """
        library = tracing_library()
        for attach, observer in (
            (library.braid_context_set_trace, self.trace),
            (library.braid_context_set_counters, self.counters),
        ):
            if attach(context, None if observer is None else observer.handle) != 0:
                raise last_error()

    def attach_to_stream(self, stream: int) -> None:
        """Let the requests of the stream with this handle be traced; raises BraidError likewise."""
        handle = None if self.trace is None else self.trace.handle
        if tracing_library().braid_stream_set_trace(stream, handle) != 0:
            raise last_error()


class Trace:
    """The timelines of runs of one model; attached by `Model.traced`.

    Kernels are recorded of a model that was compiled with `profile=True`; runs, launches on
    devices and stages of streams of any.
    """

    def __init__(self, model: "NativeModel", capacity: int) -> None:
        """Reserve memory for `capacity` events. Raises BraidError where there is no memory."""
        library = tracing_library()
        handle: int | None = library.braid_trace_create(model.handle, capacity)
        if handle is None:
            raise last_error()
        self.handle = handle
        self._model = model
        weakref.finalize(self, library.braid_trace_close, handle).atexit = False

    @property
    def dropped(self) -> int:
        """Return how many events exceeded the capacity."""
        return int(tracing_library().braid_trace_dropped(self.handle))

    def events(self) -> list[TraceEvent]:
        """Return all events, in the order in which they ended on their threads."""
        library = tracing_library()
        count: int = library.braid_trace_count(self.handle)
        return [self._event(library.braid_trace_get(self.handle, i).contents) for i in range(count)]

    def _event(self, event: CEvent) -> TraceEvent:
        described, kind = self._model.descriptor, list(EventKind)[event.kind]
        name, layouts, place = "", "", str(event.thread)
        if kind in (EventKind.KERNEL, EventKind.PART) and event.index >= 0:
            name, _, layouts = self._model.counter_names[event.index].partition("\t")
        elif kind is EventKind.LAUNCH:
            function = described.functions[event.index]
            name = function.name.decode()
            place = self._model.runs_on[function.device].name
        elif kind is EventKind.STAGE and described.stage_count:
            name = described.functions[described.stages[event.index].function].name.decode()
        request = event.value if kind is EventKind.STAGE else None
        return TraceEvent(kind, name, layouts, place, event.begin * 1e-9, event.end * 1e-9, request)

    def reset(self) -> None:
        """Forget all events, such as those of runs that warm up."""
        tracing_library().braid_trace_reset(self.handle)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write trace events as Chrome and Perfetto read them (JSON).

        Raises:
            BraidError: the file cannot be written.

        """
        if tracing_library().braid_trace_write(self.handle, file_name(path)) != 0:
            raise last_error()


@dataclass(frozen=True)
class CounterReport:
    """The counts under each profile counter, first by the name of the hardware counter.

    `missing` has the counters that this machine did not count, with the reason.
    """

    values: Mapping[str, Mapping[str, float]]
    missing: Mapping[str, str] = field(default_factory=dict[str, str])


class HardwareCounters:
    """The `perf_event_open` counters of the kernels of one model; attached by `Model.counted`."""

    def __init__(self, model: "NativeModel") -> None:
        """Open them for the threads that there are.

        Raises:
            BraidError: the model was compiled without profiling.

        """
        library = tracing_library()
        handle: int | None = library.braid_counters_create(model.handle)
        if handle is None:
            raise last_error(hint="compile it with profile=True")
        self.handle = handle
        self._model = model
        weakref.finalize(self, library.braid_counters_close, handle).atexit = False

    def report(self) -> CounterReport:
        """Return what was counted so far."""
        library = tracing_library()
        values: dict[str, Mapping[str, float]] = {}
        missing: dict[str, str] = {}
        for index in range(library.braid_counter_count()):
            name = library.braid_counter_name(index).decode()
            counted = library.braid_counters_values(self.handle, index)
            if counted:
                keys = self._model.counter_names
                values[name] = {key: float(counted[k]) for k, key in enumerate(keys)}
            else:
                missing[name] = library.braid_counters_reason(self.handle, index).decode()
        return CounterReport(values, missing)
