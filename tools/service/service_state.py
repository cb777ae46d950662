"""The state of the service that request handlers share, and its resource limits."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, HTTPException, Request

from braid.tools.service.logins import Logins
from braid.tools.service.metrics import Metrics
from braid.tools.service.storage import TaskQueue, Tokens
from braid.tools.service.task import Task
from braid.tools.service.task_runner import TaskRunner
from braid.tools.service.usage import Usage


@dataclass(frozen=True)
class Limits:
    """Resource limits of the server.

    `upload` is the size of a request body in bytes, `queue` the number of waiting tasks, `user` the
    number of waiting or running tasks of one token, `run` the resources of one run, `runs` and
    `waiting_runs` the numbers of concurrent and waiting runs.
    """

    upload: int = 512 << 20
    queue: int = 256
    user: int = 64
    run: Usage = field(default_factory=lambda: Usage(seconds=60.0))
    runs: int = 1
    waiting_runs: int = 16


@dataclass
class Service:
    """The state that request handlers share: task queue, tokens, sessions, runner, and limits."""

    queue: TaskQueue
    tokens: Tokens
    runner: TaskRunner
    limits: Limits
    logins: Logins = field(default_factory=Logins)
    metrics: Metrics = field(init=False)
    running: asyncio.Semaphore = field(init=False)
    uploads: int = 0
    runs: int = 0

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.queue)
        self.running = asyncio.Semaphore(self.limits.runs)

    async def known(self, identity: str, user: str) -> Task:
        """Return the task with this name. Raises HTTPException 404 unless `user` may see it."""
        task = await asyncio.to_thread(self.queue.get, identity)
        if task is None or task.owner not in (user, ""):
            raise HTTPException(404, f"there is no task '{identity}'")
        return task


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServicePart = Annotated[Service, Depends(_service)]
