"""Works off the queue: a few tasks at a time, each in a process in a session of its own."""

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from braid.support.byte_sizes import format_size
from braid.support.errors import BraidError
from braid.support.private_files import OTHERS_BITS, make_private_file
from braid.support.python_process import python_command, python_environment
from braid.tools.service.sessions import end_session
from braid.tools.service.storage import TaskQueue
from braid.tools.service.task import State, Task
from braid.tools.service.task_worker import REQUEST
from braid.tools.service.usage import Usage, exceeded

LOG = "worker.log"
_LINE_LIMIT = 1 << 24
"""Bytes of an event at most."""
_MOST_OUTPUT = 1 << 26
"""Bytes of all events of a task at most; they are kept in the queue."""
_CLEARING = 0.1
"""Seconds after which it is looked again whether a task's process is cleared away."""
_IDLE = 5.0
"""Seconds after which the queue is polled without a notification."""


class Bell:
    """Wakes those that wait for anything to happen."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake all that wait: something has happened."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return once something happens, or after some time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)


@dataclass
class TaskRunner:
    """Runs the tasks of `queue`, whose files are in `directory`, `workers` at a time.

    A task that exceeds the limits of `usage` fails.
    """

    queue: TaskQueue
    directory: Path
    workers: int = 1
    usage: Usage = field(default_factory=Usage)
    bell: Bell = field(default_factory=Bell)
    _running: dict[str, Process] = field(default_factory=dict[str, Process])
    _cancelled: set[str] = field(default_factory=set[str])
    _exceeded: dict[str, str] = field(default_factory=dict[str, str])

    def files(self, identity: str) -> Path:
        """Return the directory of a task."""
        return self.directory / identity

    async def run(self) -> None:
        """Work until this is cancelled; what runs then is ended, and queued again later."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.workers):
                    group.create_task(self._loop())
        finally:
            for process in list(self._running.values()):
                end_session(process.pid)

    async def cancel(self, identity: str) -> bool:
        """End a task; False where it has ended already."""
        finish = asyncio.to_thread(self.queue.finish, identity, State.CANCELLED, was=State.QUEUED)
        if await finish:
            self.bell.ring()
            return True
        self._cancelled.add(identity)
        if (process := self._running.get(identity)) is not None:
            await asyncio.to_thread(end_session, process.pid)
        done = await asyncio.to_thread(
            self.queue.finish, identity, State.CANCELLED, was=State.RUNNING
        )
        if not done:  # nobody works on it who would look
            self._cancelled.discard(identity)
        self.bell.ring()
        return done

    async def remove(self, identity: str) -> bool:
        """End a task that is running, and delete it and its files; it is false if there is none."""
        await self.cancel(identity)
        while identity in self._running:  # its process is gone, and is cleared away right now
            await self.bell.wait(_CLEARING)
        if not await asyncio.to_thread(self.queue.remove, identity):
            return False
        await asyncio.to_thread(shutil.rmtree, self.files(identity), ignore_errors=True)
        self.bell.ring()
        return True

    async def order(self, identity: str, line: str) -> bool:
        """Say something to a search that asks; False where the task does not run."""
        process = self._running.get(identity)
        if process is None or process.stdin is None:
            return False
        with suppress(ConnectionError):
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()
            return True
        return False

    async def _loop(self) -> None:
        while True:
            try:
                task = await asyncio.to_thread(self.queue.take)
            except SQLAlchemyError as error:  # such as a full disk, which may get room again
                _say(f"no task can be taken from the queue: {error}")
                task = None
            if task is None:
                await self.bell.wait(_IDLE)
                continue
            self.bell.ring()
            try:
                await self._work(task)
            except (OSError, ValueError, SQLAlchemyError) as error:
                _say(f"task {task.id}: {error}")
                await self._finish(task, State.FAILED, f"the server cannot work on it: {error}")
            self.bell.ring()

    async def _work(self, task: Task) -> None:
        directory = self.files(task.id)
        jobs = max(1, (os.cpu_count() or 1) // self.workers)
        limits = {"memory": self.usage.memory, "output": self.usage.output}
        request = {"options": task.options.model_dump(), "jobs": jobs, **limits}
        for name in (REQUEST, LOG):
            make_private_file(directory / name)
        (directory / REQUEST).write_text(json.dumps(request))
        with (directory / LOG).open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *python_command("braid.tools.service.task_worker", str(directory)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                start_new_session=True,
                limit=_LINE_LIMIT,
                umask=OTHERS_BITS,
                env={
                    **python_environment(),
                    "TMPDIR": str(directory),
                },  # private, and gone with the task
            )
        self._running[task.id] = process
        watch = asyncio.create_task(self._watch(task, process))
        try:
            if task.id in self._cancelled:  # cancelled while the process started
                end_session(process.pid)
            await self._follow(task, process)
            status = await process.wait()
        finally:
            watch.cancel()
            end_session(process.pid)
            del self._running[task.id]
        if task.id in self._cancelled:
            self._cancelled.discard(task.id)
            await self._finish(task, State.CANCELLED)
        elif (reason := self._exceeded.pop(task.id, None)) is not None:
            await self._finish(task, State.FAILED, f"the task {reason}")
        elif status == 0:
            await self._finish(task, State.DONE)
        else:
            known = await asyncio.to_thread(self.queue.get, task.id)
            error = None if known is None else known.error
            await self._finish(task, State.FAILED, error or _last_words(directory, status))

    async def _watch(self, task: Task, process: Process) -> None:
        """End a task that exceeds a resource limit."""
        reason = await exceeded(process.pid, self.files(task.id), self.usage)
        self._exceeded[task.id] = reason
        await asyncio.to_thread(end_session, process.pid)

    async def _follow(self, task: Task, process: Process) -> None:
        assert process.stdout is not None
        length = 0
        while line := await process.stdout.readline():
            if (length := length + len(line)) > _MOST_OUTPUT:
                raise ValueError(f"the worker prints more than {format_size(_MOST_OUTPUT)}")
            event: dict[str, Any] = json.loads(line)
            await asyncio.to_thread(self.queue.happened, task.id, [(event["kind"], event["data"])])
            self.bell.ring()

    async def _finish(self, task: Task, state: State, error: str | None = None) -> None:
        """Record the end, as soon as the queue can be written."""
        facts = {} if error is None else {"error": error}
        end = partial(self.queue.finish, task.id, state, was=State.RUNNING, facts=facts)
        while True:
            try:
                await asyncio.to_thread(end)
                return
            except SQLAlchemyError as problem:
                _say(f"the end of task {task.id} cannot be recorded yet: {problem}")
                await asyncio.sleep(_IDLE)


def _last_words(directory: Path, status: int) -> str:
    """Return why a worker ended that has not reported a reason."""
    ended = f"signal {-status}" if status < 0 else f"exit status {status}"
    lines = (directory / LOG).read_text(errors="replace").strip().splitlines()
    return f"the worker ended by {ended}" + (f": {lines[-1]}" if lines else "")


def _say(text: str) -> None:
    print(f"braid serve: {text}", file=sys.stderr, flush=True)


async def run_artifact(artifact: Path, inputs: Path, outputs: Path, usage: Usage) -> None:
    """Run an artifact on a `.npz` file in a process of its own.

    Raises:
        BraidError: the inputs do not fit the model, the process crashes, or uses too much.

    """
    limits = (str(usage.memory), str(usage.output))
    files = (str(artifact), str(inputs), str(outputs))
    process = await asyncio.create_subprocess_exec(
        *python_command("braid.tools.service.run_worker", *files, *limits),
        env={**python_environment(), "TMPDIR": str(outputs.parent)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        umask=OTHERS_BITS,
    )
    answer = asyncio.create_task(process.communicate())
    watch = asyncio.create_task(exceeded(process.pid, outputs.parent, usage))
    try:
        await asyncio.wait({answer, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise BraidError(f"the model {watch.result()}")
        said, _ = answer.result()
    finally:
        end_session(process.pid)
        answer.cancel()
        watch.cancel()
    if process.returncode:
        ended = f"the model's process ended by status {process.returncode}"
        raise BraidError(said.decode(errors="replace").strip() or ended)
