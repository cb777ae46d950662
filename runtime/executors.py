"""Executors of models: compiled code, the interpreter, or one that reports why nothing runs."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from braid.runtime.buffers import check_count, check_input, copied_into, host_arrays
from braid.runtime.device_arrays import Buffer
from braid.runtime.manifest import StateSpec, TensorSpec
from braid.runtime.native import NativeContext, NativeModel
from braid.runtime.native_stream import NativeStream, ProfileTotals
from braid.runtime.profile_entries import ProfileEntry, profile_entries
from braid.runtime.request_stream import InterpretedStream, RequestStream
from braid.runtime.state_order import as_in_code, as_in_model, in_model_order, orders
from braid.runtime.traces import HardwareCounters, Observed, Trace
from braid.support.errors import BraidError
from braid.support.size_counts import SizeCount, add_size_counts

Array = NDArray[Any]
Shape = tuple[int, ...]
_WHERE = "an interpreted model"
_STATE = "a model that keeps a state"
_NOT_OBSERVED = "an interpreted model has neither kernels nor launches to observe"
_COMPILED = "braid.compile makes a model that has"


class Executor(Protocol):
    """Runs a model on arrays in the model's order; may be called from any threads at once."""

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer] | None) -> list[Array]:
        """Return the outputs; write them to the buffers `outputs` where these are given."""
        ...

    def profile(self) -> dict[str, ProfileEntry]:
        """Return executions and seconds by the name of the counter since the start."""
        ...

    def profiled_sizes(self) -> tuple[SizeCount, ...]:
        """Return how often runs had which sizes of the open dims since the start."""
        ...

    def reset_profile(self) -> None:
        """Count from now on."""
        ...

    def launched_seconds(self) -> dict[str, float]:
        """Return how long launches took by the name of the device since the start."""
        ...

    def trim(self) -> None:
        """Give back the memory that runs take, as far as none uses it."""
        ...

    @property
    def threads(self) -> int:
        """On how many threads a run is, 0 for one on each CPU."""
        ...

    def set_threads(self, threads: int) -> None:
        """Let runs that begin from now on take this many threads, 0 for one on each CPU.

        Raises `BraidError` where nothing runs on threads.
        """
        ...

    def copy(self) -> "Executor":
        """Return an executor of the same model that counts on its own."""
        ...

    def traced(self, capacity: int) -> AbstractContextManager[Trace]:
        """Let runs and streams that begin meanwhile be recorded, `capacity` events of them.

        Raises `BraidError` where nothing compiled runs.
        """
        ...

    def counted(self) -> AbstractContextManager[HardwareCounters]:
        """Let the hardware count while kernels run that begin meanwhile.

        Raises `BraidError` for a model without profile counters.
        """
        ...

    def open_stream(self, deadline: float | None, goes_on: bool) -> RequestStream:
        """Open a stream, with `deadline` seconds for each launch.

        With `goes_on`, a request that fails does not end it.
        """
        ...


class NativeExecutor:
    """Compiled code, with as many contexts (each an arena) as threads have called it at once.

    It has no lock but lists, whose operations are atomic: a lock that was held while the process
    forked would be held in the child for ever.
    """

    def __init__(
        self,
        model: NativeModel,
        threads: int,
        streams: int = 1,
        state: Sequence[StateSpec] = (),
    ) -> None:
        """Run `model` on this many threads (0: all), and on no fewer than it has inter-op streams.

        Inputs and outputs of the `state` come and go with dims as the model has them.
        """
        self._model = model
        self._state = tuple(state)
        self._orders = orders(self._state)
        self._inter_op_streams = streams
        self._threads = self._enough(threads)
        self._idle: list[NativeContext] = []
        self._all: list[NativeContext] = []
        self._ended: list[_Account] = []
        self._streams: WeakSet[NativeStream] = WeakSet()
        self._streamed = ProfileTotals(model)
        self._observed = Observed()

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer] | None) -> list[Array]:
        """Run in a separate context, which is returned to the pool."""
        if self._orders:
            return self._run_reordered(inputs, outputs)
        # Not by `_context`, whose generator takes a fifth of the time of a small model's call.
        context = self._take()
        try:
            return context.run(inputs, outputs)
        finally:
            self._idle.append(context)

    def run_growing(
        self, inputs: Sequence[Buffer], outputs_for: Callable[[Sequence[Shape]], Sequence[Array]]
    ) -> list[Array]:
        """Run in a separate context, into outputs that `outputs_for` makes from their shapes.

        Inputs and outputs have their dims as code has them; those of a state that is appended to
        may be the same memory.
        """
        with self._context() as context:
            return context.run_into(inputs, outputs_for)

    def _run_reordered(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer] | None
    ) -> list[Array]:
        """Run code that has dims of its state in another order than the model."""
        model = self._model
        check_count("input", len(inputs), len(model.inputs))
        specs = in_model_order(model.inputs, self._state)
        given = [check_input(s, x) for s, x in zip(specs, host_arrays(inputs, _STATE), strict=True)]
        stored = [
            as_in_code(array, self._orders.get(spec.name, ()))
            for spec, array in zip(model.inputs, given, strict=True)
        ]
        with self._context() as context:
            found = context.run(stored)
        results = [
            np.ascontiguousarray(as_in_model(array, self._orders[spec.name]))
            if spec.name in self._orders
            else array
            for spec, array in zip(model.outputs, found, strict=True)
        ]
        if outputs is None:
            return results
        check_count("output", len(outputs), len(model.outputs))
        expected = in_model_order(model.outputs, self._state)
        return copied_into(host_arrays(outputs, _STATE), expected, results)

    @property
    def state(self) -> tuple[StateSpec, ...]:
        """Return the states that may be appended to in place."""
        return () if self._model.decides_sizes else self._state

    @contextmanager
    def _context(self) -> Generator[NativeContext]:
        context = self._take()
        try:
            yield context
        finally:
            self._idle.append(context)

    def profile(self) -> dict[str, ProfileEntry]:
        """Return the sums over all contexts and streams; empty without profiling."""
        streamed = self._streamed.copy()
        for stream in tuple(self._streams):
            stream.add_profile(streamed)
        counts, times = streamed.counts.tolist(), streamed.times.tolist()
        total = profile_entries(self._model.counter_names, counts, times)
        for account in self._accounts():
            for name, entry in account.profile.items():
                total[name] = total[name] + entry
        return total

    def profiled_sizes(self) -> tuple[SizeCount, ...]:
        """Return the sums over all contexts."""
        return add_size_counts(account.sizes for account in self._accounts())

    def reset_profile(self) -> None:
        """Set the counters of all contexts and streams to zero."""
        self._streamed.reset()
        self._ended.clear()
        for counting in (*self._all, *self._streams):
            counting.reset_profile()

    def launched_seconds(self) -> dict[str, float]:
        """Return the sums over all contexts; empty without devices."""
        total: dict[str, float] = {}
        for account in self._accounts():
            for name, seconds in account.device_seconds.items():
                total[name] = total.get(name, 0.0) + seconds
        return total

    def trim(self) -> None:
        """Give back the arenas of contexts that nobody runs on."""
        trimmed = self._all_idle()
        for context in trimmed:
            context.trim()
        self._idle.extend(trimmed)

    @property
    def threads(self) -> int:
        """On how many threads a run is, 0 for one on each CPU."""
        return self._threads

    def set_threads(self, threads: int) -> None:
        """Let runs and streams that begin from now on take this many; those that run stay as is."""
        self._threads = self._enough(threads)
        for context in self._all_idle():
            self._end(context)

    def copy(self) -> "NativeExecutor":
        """Return an executor of the same code and weights, with contexts of its own."""
        return NativeExecutor(self._model, self._threads, self._inter_op_streams, self._state)

    @property
    def emulated(self) -> bool:
        """Return whether functions for devices that are missing run on the host."""
        return self._model.emulated

    def open_stream(self, deadline: float | None, goes_on: bool) -> RequestStream:
        """Open a stream of the native runtime.

        It does not overlap requests where data decide sizes, or code has dims in another order.
        """
        if self._model.decides_sizes or self._orders:
            return InterpretedStream(lambda inputs: self.run(inputs, None))
        stream = NativeStream(self._model, self._threads, deadline, goes_on, self._streamed)
        self._streams.add(stream)
        if self._observed.trace is not None:
            stream.observe(self._observed)
        return stream

    @contextmanager
    def traced(self, capacity: int) -> Generator[Trace]:
        """Record runs of contexts that are taken, and streams that are opened, meanwhile."""
        trace = Trace(self._model, capacity)
        before, self._observed = self._observed, replace(self._observed, trace=trace)
        try:
            yield trace
        finally:
            self._observed = replace(self._observed, trace=before.trace)

    @contextmanager
    def counted(self) -> Generator[HardwareCounters]:
        """Count while kernels of contexts run that are taken meanwhile."""
        counters = HardwareCounters(self._model)
        before, self._observed = self._observed, replace(self._observed, counters=counters)
        try:
            yield counters
        finally:
            self._observed = replace(self._observed, counters=before.counters)

    def _take(self) -> NativeContext:
        with suppress(IndexError):
            while True:
                context = self._idle.pop()
                if context.threads == self._threads:
                    return self._observe(context)
                self._end(context)  # it ran while the number of threads was changed
        context = self._model.context(self._threads)
        self._all.append(context)
        return self._observe(context)

    def _observe(self, context: NativeContext) -> NativeContext:
        """Let what is attached now watch the context, and nothing else."""
        if context.observed is not self._observed:
            self._observed.attach_to_context(context.handle)
            context.observed = self._observed
        return context

    def _enough(self, threads: int) -> int:
        """Return at least as many threads as inter-op streams need; 0 stands for all."""
        return max(threads, self._inter_op_streams) if threads else 0

    def _all_idle(self) -> list[NativeContext]:
        """Take all contexts that nobody runs on."""
        taken: list[NativeContext] = []
        with suppress(IndexError):
            while True:
                taken.append(self._idle.pop())
        return taken

    def _end(self, context: NativeContext) -> None:
        """Close an idle context, but keep its counts."""
        self._all.remove(context)
        self._ended.append(_account_of(context))

    def _accounts(self) -> list["_Account"]:
        """Return what all contexts have counted."""
        return [*self._ended, *map(_account_of, tuple(self._all))]


class _Account(NamedTuple):
    """The profile that a context has counted, with the seconds of its devices and its sizes."""

    profile: dict[str, ProfileEntry]
    device_seconds: dict[str, float]
    sizes: tuple[SizeCount, ...]


def _account_of(context: NativeContext) -> _Account:
    return _Account(context.profile(), context.device_seconds(), context.profiled_sizes())


class InterpreterExecutor:
    """The numpy interpreter of the dialect: slow, and the meaning of every op."""

    def __init__(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        evaluate: Callable[[Sequence[Array]], Sequence[Array]],
    ) -> None:
        """Run `evaluate`, from the inputs to the outputs, after the checks of compiled code."""
        self._inputs = inputs
        self._outputs = outputs
        self._evaluate = evaluate

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer] | None) -> list[Array]:
        """Interpret the model."""
        given = host_arrays(inputs, _WHERE)
        buffers = host_arrays(outputs, _WHERE) if outputs is not None else None
        arrays = [check_input(s, x) for s, x in zip(self._inputs, given, strict=True)]
        results = list(self._evaluate(arrays))
        if buffers is None:
            # Ops that only move elements return views of inputs, of weights, and of results of such
            # ops.
            return [np.array(result, order="C") for result in results]
        return copied_into(buffers, self._outputs, results)

    def profile(self) -> dict[str, ProfileEntry]:
        """Return nothing: the interpreter has no counters."""
        return {}

    def profiled_sizes(self) -> tuple[SizeCount, ...]:
        """Return nothing: the interpreter does not count."""
        return ()

    def reset_profile(self) -> None:
        """Do nothing: the interpreter has no counters."""

    def launched_seconds(self) -> dict[str, float]:
        """Return nothing: the interpreter has no devices."""
        return {}

    def trim(self) -> None:
        """Do nothing: the interpreter keeps no memory."""

    @property
    def threads(self) -> int:
        """One: numpy's own threads are not braid's."""
        return 1

    def set_threads(self, threads: int) -> None:
        """Do nothing for 1; raises `BraidError` for any other number."""
        if threads != 1:
            raise BraidError(
                f"threads is {threads}, expected 1 of an interpreted model",
                hint="braid.compile makes a model that runs on more",
            )

    def copy(self) -> "InterpreterExecutor":
        """Return an executor of the same module, which nothing changes."""
        return InterpreterExecutor(self._inputs, self._outputs, self._evaluate)

    def traced(self, capacity: int) -> AbstractContextManager[Trace]:
        """Raise BraidError."""
        raise BraidError(_NOT_OBSERVED, hint=_COMPILED)

    def counted(self) -> AbstractContextManager[HardwareCounters]:
        """Raise BraidError."""
        raise BraidError(_NOT_OBSERVED, hint=_COMPILED)

    def open_stream(self, deadline: float | None, goes_on: bool) -> RequestStream:
        """Open a stream that interprets each request when it is handed in."""
        return InterpretedStream(lambda inputs: self.run(inputs, None))


@dataclass(frozen=True)
class ElsewhereExecutor:
    """Refuses to run, with the reason and a `hint`."""

    reason: str
    hint: str

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer] | None) -> list[Array]:
        """Raise BraidError."""
        raise BraidError(self.reason, hint=self.hint)

    def open_stream(self, deadline: float | None, goes_on: bool) -> RequestStream:
        """Raise BraidError."""
        raise BraidError(self.reason, hint=self.hint)

    def traced(self, capacity: int) -> AbstractContextManager[Trace]:
        """Raise BraidError."""
        raise BraidError(self.reason, hint=self.hint)

    def counted(self) -> AbstractContextManager[HardwareCounters]:
        """Raise BraidError."""
        raise BraidError(self.reason, hint=self.hint)

    def launched_seconds(self) -> dict[str, float]:
        """Return nothing: nothing was launched."""
        return {}

    def profile(self) -> dict[str, ProfileEntry]:
        """Return an empty profile: nothing ran."""
        return {}

    def profiled_sizes(self) -> tuple[SizeCount, ...]:
        """Return nothing: nothing ran."""
        return ()

    def reset_profile(self) -> None:
        """Do nothing: nothing ran."""

    def trim(self) -> None:
        """Do nothing: nothing ran."""

    @property
    def threads(self) -> int:
        """Raises BraidError."""
        raise BraidError(self.reason, hint=self.hint)

    def set_threads(self, threads: int) -> None:
        """Raise BraidError."""
        raise BraidError(self.reason, hint=self.hint)

    def copy(self) -> "ElsewhereExecutor":
        """Return itself, which has no state."""
        return self
