"""The protocol of streams of requests, whose results come out in the order of the requests."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from braid.runtime.buffers import host_arrays
from braid.runtime.device_arrays import Buffer
from braid.runtime.native_stream import StageTimes, StreamEndedError

Array = NDArray[Any]


class RequestStream(Protocol):
    """A stream of one model; see `NativeStream`. One thread hands in, one takes."""

    @property
    def capacity(self) -> int:
        """Return the largest number of requests that may be under way."""
        ...

    def prepare(self, inputs: Sequence[Buffer], *, copy: bool) -> list[Array]:
        """Check inputs; raises `BraidError` for those that are not the model's."""
        ...

    def push(self, inputs: Sequence[Array]) -> None:
        """Hand a request in; waits while `capacity` are under way."""
        ...

    def pop(self, timeout: float) -> list[Array] | None:
        """Take a result; None if it is not there in time."""
        ...

    def stages(self) -> list[StageTimes]:
        """Return the times of each stage so far."""
        ...

    def close(self) -> None:
        """End the stream."""
        ...


class InterpretedStream:
    """Runs each request when it is submitted, and keeps its result."""

    capacity = 1

    def __init__(self, run: Callable[[Sequence[Array]], list[Array]]) -> None:
        self._run = run
        self._results: list[list[Array] | Exception] = []
        self._closed = False

    def prepare(self, inputs: Sequence[Buffer], *, copy: bool) -> list[Array]:
        """Leave the checks to the run."""
        arrays = host_arrays(inputs, "an interpreted model")
        return [np.array(x) if copy else x for x in arrays]

    def push(self, inputs: Sequence[Array]) -> None:
        """Run the request."""
        if self._closed:
            raise StreamEndedError("the stream has been closed")
        try:
            self._results.append(self._run(inputs))
        except Exception as error:
            self._results.append(error)

    def pop(self, timeout: float) -> list[Array] | None:
        """Return the result, or raise what the run raised."""
        if self._closed or not self._results:
            raise StreamEndedError("the stream has ended")
        result = self._results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def stages(self) -> list[StageTimes]:
        """Return nothing: the interpreter has no stages."""
        return []

    def close(self) -> None:
        """Forget what was not taken."""
        self._closed = True
        self._results.clear()
