"""Open texts, each analyzed in the background once nothing was typed for a moment."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from braid.frontends.mlir.source_map import Stop, StoppedError
from braid.tools.lsp.analysis import Analysis

PAUSE = 0.15
"""Seconds without a change after which a small text is analyzed."""
_PAUSE_OF_A_CHARACTER = 2e-7
"""The additional time of a text for each of its characters: 1 MB takes a second or more to
parse."""
_LONGEST_PAUSE = 1.0

P = ParamSpec("P")
R = TypeVar("R")
Analyze = Callable[[str, str, Stop], Analysis]
"""Analyzes a text, given the URI of the document that it is of."""
Publish = Callable[[str, int, Analysis], None]
"""Takes the URI and the version of what was analyzed."""


@dataclass
class _Version:
    """One version of a document; `hurry` says that a request waits for it."""

    number: int
    text: str
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    is_stopped: bool = False
    task: "asyncio.Task[Analysis | None] | None" = None


class Documents:
    """The open documents by URI. Everything but `analyze` runs on the event loop's thread."""

    def __init__(self, analyze: Analyze, publish: Publish) -> None:
        """Take `publish`, which gets each analysis that is still current when it is done."""
        self._analyze = analyze
        self._publish = publish
        self._versions: dict[str, _Version] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="braid-lsp")

    def update(self, uri: str, number: int, text: str) -> None:
        """Take a new version of a document, in place of the one before."""
        self._stop(uri)
        version = _Version(number, text)
        self._versions[uri] = version
        version.task = asyncio.ensure_future(self._run(uri, version))

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._stop(uri)
        self._versions.pop(uri, None)

    def shutdown(self) -> None:
        """Stop all work that is under way."""
        for uri in list(self._versions):
            self.close(uri)
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def in_background(self, function: Callable[P, R], *args: P.args, **kw: P.kwargs) -> R:
        """Return what `function` does, on the thread on which texts are analyzed."""
        call = partial(function, *args, **kw)
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    async def analysis(self, uri: str) -> Analysis | None:
        """Return the analysis of the newest version, None where the document is not open."""
        while (version := self._versions.get(uri)) is not None and version.task is not None:
            version.hurry.set()
            found = await asyncio.shield(version.task)
            if found is not None:
                return found
        return None

    def _stop(self, uri: str) -> None:
        if (version := self._versions.get(uri)) is not None:
            version.is_stopped = True
            version.hurry.set()

    async def _run(self, uri: str, version: _Version) -> Analysis | None:
        """Return the analysis of a version, None if another one came first."""
        pause = min(PAUSE + _PAUSE_OF_A_CHARACTER * len(version.text), _LONGEST_PAUSE)
        await _first(version.hurry.wait(), pause)
        if version.is_stopped:
            return None
        loop = asyncio.get_running_loop()
        try:
            analysis = await loop.run_in_executor(
                self._worker, self._analyze, version.text, uri, lambda: version.is_stopped
            )
        except StoppedError:
            return None
        if version.is_stopped:
            return None
        self._publish(uri, version.number, analysis)
        return analysis


async def _first(event: Awaitable[object], seconds: float) -> None:
    """Wait for `event`, or for `seconds`."""
    try:
        await asyncio.wait_for(event, seconds)
    except TimeoutError:
        return
