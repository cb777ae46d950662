"""The service: its addresses, who may use them, and their limits."""

import asyncio
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException as StarletteHTTPException

import braid
from braid.support.errors import BraidError
from braid.tools.service.access import (
    GUARDED,
    Authorized,
    add_sessions,
    still_may,
    watch_tokens,
)
from braid.tools.service.guard import Guard, own_names
from braid.tools.service.refusals import give_up, refusals, refuse
from braid.tools.service.service_state import Service, ServicePart
from braid.tools.service.task import State, Task, TaskOptions
from braid.tools.service.task_runner import run_artifact
from braid.tools.service.task_worker import ARTIFACT, EXPLANATION
from braid.tools.service.uploads import receive

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_ANY_BINARY = {"application/octet-stream": _BINARY}
_PAGE_POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
_EXPLANATION_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data:"
)
_KEEP_ALIVE = 10.0
_LARGEST_ORDER = 1 << 14
"""Bytes of a body that is read as a whole."""


class Order(BaseModel):
    """An answer of the user between levels, such as go, stop, quit or threshold X.

    The others are level N and space NAME=V,V … The service repeats its question after any other
    answer.
    """

    line: str = Field(pattern=r"^[ -~]+$", max_length=1000)


TaskId = Annotated[str, PathParameter(pattern="^[0-9a-f]{32}$")]


def _busy(reason: str) -> HTTPException:
    return HTTPException(429, reason, headers={"Retry-After": "10", "Connection": "close"})


def _body(what: str) -> dict[str, Any]:
    return {"requestBody": {"required": True, "description": what, "content": _ANY_BINARY}}


def make_app(service: Service, names: Iterable[str] = ()) -> FastAPI:
    """Return the application, which processes the queue while it runs; `names` are its hosts."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        service.queue.resume()
        work = [
            asyncio.create_task(service.runner.run()),
            asyncio.create_task(watch_tokens(service)),
        ]
        yield
        for each in work:
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each

    app = FastAPI(
        title="braid",
        version=braid.__version__,
        description="Tunes and compiles models as tasks.",
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.add_middleware(Guard, refused=service.metrics.refused, names=own_names(names))
    app.add_exception_handler(StarletteHTTPException, refuse)
    for kind in (OSError, SQLAlchemyError):
        app.add_exception_handler(kind, give_up)
    _add_submission(app)
    _add_lists(app)
    _add_events(app)
    _add_ends(app)
    _add_results(app)
    _add_runs(app)
    _add_operation(app)
    add_sessions(app)
    _add_page(app)
    return app


def _add_submission(app: FastAPI) -> None:
    @app.post(
        "/tasks",
        status_code=201,
        responses=refusals(400, 401, 413, 429),
        openapi_extra=_body("The model's file."),
        **GUARDED,
    )
    async def submit(
        request: Request,
        service: ServicePart,
        user: Authorized,
        options: Annotated[TaskOptions, Query()],
    ) -> Task:
        """Queue a model."""
        waiting = (await asyncio.to_thread(service.queue.counts))[State.QUEUED]
        if waiting + service.uploads >= service.limits.queue:
            raise _busy(f"{service.limits.queue} tasks are waiting, the maximum")
        own = await asyncio.to_thread(service.queue.active_of, user.name)
        if own >= service.limits.user:
            raise _busy(f"{own} tasks of '{user.name}' wait or run, the maximum of a token")
        identity = uuid.uuid4().hex
        directory = service.runner.files(identity)
        directory.mkdir(mode=0o700)
        service.uploads += 1
        try:
            model = directory / options.name  # as messages name it
            size = await receive(request, model, service.limits.upload)
            await still_may(user, service)
            task = await asyncio.to_thread(service.queue.add, identity, options, user.name)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        finally:
            service.uploads -= 1
        service.metrics.uploaded.inc(size)
        service.runner.bell.ring()
        return task


def _add_lists(app: FastAPI) -> None:
    @app.get("/tasks", responses=refusals(401), **GUARDED)
    def list_tasks(
        service: ServicePart,
        user: Authorized,
        count: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> list[Task]:
        """Return the latest tasks of this token, the newest first."""
        return service.queue.latest(count, user.name)

    @app.get("/tasks/{identity}", responses=refusals(401, 404), **GUARDED)
    async def show_task(identity: TaskId, service: ServicePart, user: Authorized) -> Task:
        """Return a task."""
        return await service.known(identity, user.name)


def _add_events(app: FastAPI) -> None:
    @app.get(
        "/tasks/{identity}/events",
        response_class=EventSourceResponse,
        responses=refusals(401, 404),
        **GUARDED,
    )
    async def follow(
        task: Annotated[Task, Depends(_known)],
        service: ServicePart,
        user: Authorized,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        last_event_id: Annotated[int, Header(ge=0, le=2**53)] = 0,
    ) -> AsyncIterator[ServerSentEvent]:
        """Return the events of a task after a given one, until it ends or access is revoked."""
        after = max(after, last_event_id)
        while (known := await asyncio.to_thread(service.queue.get, task.id)) is not None:
            if not await asyncio.to_thread(user.may_go_on, service):
                return
            state = known.state
            events = await asyncio.to_thread(service.queue.events, task.id, after)
            for each in events:
                after = each.number
                yield ServerSentEvent(data=each, event=each.kind, id=str(each.number))
            if not events:
                if state.is_final:
                    return
                await service.runner.bell.wait(_KEEP_ALIVE)

    @app.post(
        "/tasks/{identity}/orders",
        status_code=202,
        responses=refusals(401, 404, 409),
        max_body_size=_LARGEST_ORDER,
        **GUARDED,
    )
    async def steer(identity: TaskId, order: Order, service: ServicePart, user: Authorized) -> Task:
        """Answer a search that asks how to go on."""
        task = await service.known(identity, user.name)
        if not task.asks or not await service.runner.order(identity, order.line):
            raise HTTPException(409, "the task asks nothing")
        return task


def _add_ends(app: FastAPI) -> None:
    @app.delete("/tasks/{identity}", status_code=204, responses=refusals(401, 404), **GUARDED)
    async def remove(identity: TaskId, service: ServicePart, user: Authorized) -> Response:
        """Forget a task and its files, and end it where it still runs."""
        await service.known(identity, user.name)
        if not await service.runner.remove(identity):
            raise HTTPException(404, f"there is no task '{identity}'")
        return Response(status_code=204)

    @app.post("/tasks/{identity}/cancel", responses=refusals(401, 404, 409), **GUARDED)
    async def cancel(identity: TaskId, service: ServicePart, user: Authorized) -> Task:
        """End a task, with all processes that work on it."""
        task = await service.known(identity, user.name)
        if not await service.runner.cancel(identity):
            task = await service.known(identity, user.name)
            if task.state is not State.CANCELLED:
                raise HTTPException(409, f"the task is {task.state}")
        return await service.known(identity, user.name)


async def _known(identity: TaskId, service: ServicePart, user: Authorized) -> Task:
    return await service.known(identity, user.name)


def _add_results(app: FastAPI) -> None:
    @app.get(
        "/tasks/{identity}/artifact",
        response_class=FileResponse,
        responses={**refusals(401, 404), 200: {"content": _ANY_BINARY}},
        **GUARDED,
    )
    async def artifact(identity: TaskId, service: ServicePart, user: Authorized) -> FileResponse:
        """Return the compiled model."""
        task = await service.known(identity, user.name)
        name = f"{Path(task.options.name).stem}.braid"
        path = _file(service, task, ARTIFACT, task.has_artifact)
        return FileResponse(path, media_type="application/octet-stream", filename=name)

    @app.get(
        "/tasks/{identity}/explain",
        response_class=FileResponse,
        responses={**refusals(401, 404), 200: {"content": {"text/html": {}}}},
        **GUARDED,
    )
    async def explanation(identity: TaskId, service: ServicePart, user: Authorized) -> FileResponse:
        """Return the page of `braid explain --html`."""
        task = await service.known(identity, user.name)
        path = _file(service, task, EXPLANATION, task.has_explanation)
        headers = {"Content-Security-Policy": _EXPLANATION_POLICY}
        return FileResponse(path, media_type="text/html", headers=headers)


def _add_runs(app: FastAPI) -> None:
    @app.post(
        "/tasks/{identity}/run",
        response_class=FileResponse,
        responses={**refusals(400, 401, 404, 413, 429), 200: {"content": _ANY_BINARY}},
        openapi_extra=_body("The inputs by name, as numpy.savez writes them."),
        **GUARDED,
    )
    async def run(
        identity: TaskId, request: Request, service: ServicePart, user: Authorized
    ) -> FileResponse:
        """Run the compiled model; the outputs by name, as a .npz file."""
        task = await service.known(identity, user.name)
        compiled = _file(service, task, ARTIFACT, task.has_artifact)
        if service.runs >= service.limits.runs + service.limits.waiting_runs:
            raise _busy(f"{service.limits.waiting_runs} runs are waiting, the maximum")
        directory = Path(tempfile.mkdtemp(prefix="run-", dir=service.runner.files(identity)))
        removal = BackgroundTask(shutil.rmtree, directory, ignore_errors=True)
        inputs, outputs = directory / "inputs.npz", directory / "outputs.npz"
        service.runs += 1
        try:
            await receive(request, inputs, service.limits.upload)
            async with service.running:
                await still_may(user, service)
                begin = time.monotonic()
                await run_artifact(compiled, inputs, outputs, service.limits.run)
                service.metrics.runs.observe(time.monotonic() - begin)
        except BaseException as error:
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(error, BraidError):
                raise HTTPException(400, error.message) from error
            raise
        finally:
            service.runs -= 1
        return FileResponse(
            outputs,
            media_type="application/octet-stream",
            filename="outputs.npz",
            background=removal,
        )


def _file(service: Service, task: Task, name: str, is_there: bool) -> Path:
    """Return a file of a task. Raises HTTPException 404."""
    path = service.runner.files(task.id) / name
    if not is_there or not path.exists():
        raise HTTPException(404, f"the task is {task.state} and has no '{name}'")
    return path


class Health(BaseModel):
    """The readiness check of a load balancer or a supervisor: whether tasks can be queued."""

    status: Literal["ok"] = "ok"
    version: str = braid.__version__


def _add_operation(app: FastAPI) -> None:
    @app.get("/healthz", responses=refusals(507))
    def health(service: ServicePart) -> Health:
        """Return that the server and its queue work; needs no token."""
        service.queue.counts()
        return Health()

    @app.get(
        "/metrics",
        response_class=Response,
        responses={**refusals(401), 200: {"content": {"text/plain": {}}}},
        **GUARDED,
    )
    def metrics(service: ServicePart) -> Response:
        """Return counts for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_page(app: FastAPI) -> None:
    folder = Path(str(files("braid.tools.service").joinpath("page")))

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(
            folder / "index.html", headers={"Content-Security-Policy": _PAGE_POLICY}
        )

    app.mount("/page", StaticFiles(directory=folder), name="page")
