"""Requests and results of a stream in an event loop: what `async for` over a stream runs."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_Requests = Iterable[object] | AsyncIterable[object]


class AsyncReader:
    """A task that hands requests in, and a thread that waits for their results."""

    def __init__(
        self, requests: _Requests, hand_in: Callable[[object], None], capacity: int
    ) -> None:
        self.broken: Exception | None = None
        self._thread = ThreadPoolExecutor(1, "braid-stream")
        self._room = asyncio.Semaphore(capacity)
        self._due = asyncio.Semaphore(0)
        self._ended = False
        self._task = asyncio.create_task(self._feed(requests, hand_in))

    async def _feed(self, requests: _Requests, hand_in: Callable[[object], None]) -> None:
        try:
            async for request in _each(requests):
                await self._room.acquire()
                hand_in(request)
                self._due.release()
        except Exception as error:
            self.broken = error
        self._ended = True
        self._due.release()

    async def has_next(self) -> bool:
        """Wait for a request to be under way; False where there are no more."""
        await self._due.acquire()
        if not self._ended or not self._due.locked():
            return True
        self._due.release()
        return False

    async def run(self, take: Callable[[], _T]) -> _T:
        """Wait for a result in the thread."""
        result = await asyncio.get_running_loop().run_in_executor(self._thread, take)
        self._room.release()
        return result

    async def close(self, close: Callable[[], None]) -> None:
        """End the task, and `close` without the loop waiting for it."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, close)
        self._thread.shutdown(wait=False)


async def _each(requests: _Requests) -> AsyncIterator[object]:
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request
