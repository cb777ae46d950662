"""Streams of requests through a model, whose devices work side by side on consecutive ones."""

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from braid.runtime.device_arrays import Buffer
from braid.runtime.native_stream import StageTimes, StreamEndedError, StreamLostError
from braid.runtime.request_stream import RequestStream
from braid.runtime.torch_tensors import any_tensor, tensor_of
from braid.support.errors import BraidError

if TYPE_CHECKING:
    from braid.runtime.async_reader import AsyncReader

Array = NDArray[Any]
Result = Array | tuple[Array, ...] | BraidError
Requests = Iterable[object] | AsyncIterable[object]
Bind = Callable[[tuple[object, ...], Mapping[str, object]], list[Buffer]]

STREAM_DEADLINE = 60.0
"""Seconds that a launch may take unless a caller says otherwise."""
_GLANCE = 0.1
"""Seconds after which a thread that waits for a result looks whether it is to stop."""


class Stream(Iterator[Result], AsyncIterator[Result]):
    """The results of a model for requests, in their order: `for y in model.stream(xs)`.

    Requests are taken from the iterable ahead of the results, up to `capacity` of them: by `for` in
    the thread that asks for results, by `async for` in a task. Close a stream that is not read to
    its end (`with`, `async with`, `close`), or let it go. Use one kind of iteration.
    """

    def __init__(
        self,
        stream: RequestStream,
        requests: Requests,
        bind: Bind,
        *,
        return_errors: bool,
        copy: bool,
    ) -> None:
        """Open a stream; users call `Model.stream`, and `bind` makes arrays in the model's
        order.
        """
        self._stream = stream
        self._requests = requests
        self._bind = bind
        self._return_errors = return_errors
        self._copy = copy
        self._source: Iterator[object] | None = None
        # Says for each request in the stream whether its results are to be tensors of PyTorch.
        self._pending: deque[BraidError | bool] = deque()
        self._broken: Exception | None = None  # what the iterable raised
        self._drained = self._closed = False
        self._reader: AsyncReader | None = None

    @property
    def capacity(self) -> int:
        """Return how many requests may be under way."""
        return self._stream.capacity

    def stages(self) -> list[StageTimes]:
        """Return the number of runs and the time of each stage so far, with the expected time."""
        return self._stream.stages()

    def __iter__(self) -> "Stream":
        """Return the stream itself."""
        return self

    def __next__(self) -> Result:
        """Return the next result.

        Raises:
            BraidError: the request has failed, which ends the stream, unless errors are returned;
                or a launch is beyond its deadline.

        """
        if self._closed:
            raise StopIteration
        try:
            self._fill()
            if self._pending:
                return self._next_result()
        except BaseException:
            self.close()
            raise
        self.close()
        if self._broken is not None:
            raise self._broken
        raise StopIteration

    def __aiter__(self) -> "Stream":
        """Return the stream itself."""
        return self

    async def __anext__(self) -> Result:
        """Return the next result, for which other tasks do not wait; raises as `__next__`."""
        if self._closed:
            raise StopAsyncIteration
        if self._reader is None:
            from braid.runtime.async_reader import AsyncReader  # asyncio takes a while to import

            self._reader = AsyncReader(self._requests, self._hand_in, self.capacity)
        try:
            if await self._reader.has_next():
                return await self._reader.run(self._next_result)
        except BaseException:
            await self.aclose()
            raise
        broken = self._reader.broken
        await self.aclose()
        if broken is not None:
            raise broken
        raise StopAsyncIteration

    def __enter__(self) -> "Stream":
        """Return the stream itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> "Stream":
        """Return the stream itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.aclose()

    def close(self) -> None:
        """End the stream; waits for launches that are running, as long as their deadline says."""
        self._closed = True
        self._stream.close()
        self._pending.clear()

    async def aclose(self) -> None:
        """End the stream, and the task that takes requests."""
        self._closed = True
        if self._reader is None:
            self.close()
        else:
            await self._reader.close(self.close)

    def _fill(self) -> None:
        """Hand in as many requests as may be under way."""
        if self._source is None:
            if not isinstance(self._requests, Iterable):
                if hasattr(self._requests, "__aiter__"):
                    raise BraidError(
                        "these requests are asynchronous", hint="use `async for` on the stream"
                    )
                raise BraidError(
                    f"requests are of type {type(self._requests).__name__}, expected an iterable",
                    hint="each request is an array, a tuple of arrays, or a mapping by name",
                )
            self._source = iter(self._requests)
        while not self._drained and len(self._pending) < self.capacity:
            try:
                request = next(self._source)
            except StopIteration:
                self._drained = True
            except Exception as error:
                self._drained, self._broken = True, error  # after the results that are due
            else:
                self._hand_in(request)

    def _hand_in(self, request: object) -> None:
        """Begin a request; an invalid one fails when it is its turn."""
        arguments, named = _arguments(request)
        tensors = any_tensor((*arguments, *named.values()))
        try:
            inputs = self._stream.prepare(self._bind(arguments, named), copy=self._copy)
        except BraidError as error:
            self._pending.append(error)
            return
        try:
            self._stream.push(inputs)
        except StreamEndedError:
            self._drained = True  # why, is said where the results end
        self._pending.append(tensors)

    def _next_result(self) -> Result:
        """Wait for the oldest request."""
        pending = self._pending.popleft()
        try:
            if isinstance(pending, BraidError):
                raise pending
            while (results := self._stream.pop(_GLANCE)) is None:
                pass
        except (StreamLostError, StreamEndedError):
            raise
        except BraidError as error:
            if self._return_errors:
                return error
            raise
        if pending:
            results = list(map(tensor_of, results))
        return results[0] if len(results) == 1 else tuple(results)


def _arguments(request: object) -> tuple[tuple[object, ...], Mapping[str, object]]:
    """Return the arguments of a request by position and by name."""
    match request:
        case Mapping():
            return (), cast(Mapping[str, object], request)
        case tuple() | list():
            return tuple(cast(tuple[object, ...], request)), {}
        case _:
            return (request,), {}


def check_deadline(deadline: object) -> None:
    """Raise `BraidError` unless a deadline is a positive number of seconds, or None."""
    if deadline is None or (isinstance(deadline, int | float) and 0 < deadline < float("inf")):
        return
    raise BraidError(
        f"deadline is {deadline!r}, expected a positive number of seconds",
        hint="None means no deadline",
    )
