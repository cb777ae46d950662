"""Answer requests that cannot be served: as JSON, counted, and described by OpenAPI."""

from typing import Any, cast

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match


class Problem(BaseModel):
    """The reason why a request was refused."""

    detail: str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI descriptions of answers with these statuses."""
    what = {
        400: "The body cannot be read, or a run of it fails, or exceeds its resources.",
        401: "No valid token.",
        404: "There is no such task, or it has no such file.",
        409: "The task is in another state.",
        413: "The body is too large.",
        429: "Too many wait already.",
        507: "The server cannot use its queue.",
    }
    content = {"application/json": {"schema": Problem.model_json_schema()}}
    return {status: {"description": what[status], "content": content} for status in statuses}


async def refuse(request: Request, error: Exception) -> Response:
    """Answer an HTTPException, and count it."""
    assert isinstance(error, StarletteHTTPException)
    if error.status_code == 405:  # the router reports only the methods of one route of the path
        error.headers = {"Allow": ", ".join(_methods(request))}
    request.app.state.service.metrics.refused.labels(str(error.status_code)).inc()
    return await http_exception_handler(request, error)


async def give_up(request: Request, error: Exception) -> Response:
    """Answer where the server itself cannot go on, such as on a full disk."""
    said = getattr(error, "strerror", None) or str(getattr(error, "orig", error))
    what = HTTPException(507, f"the server cannot keep what it has to: {said}")
    return await refuse(request, what)


def _methods(request: Request) -> list[str]:
    """Return what may be asked of the path."""
    found = set[str]()
    for route in cast(FastAPI, request.app).routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return sorted(found)
