"""Authentication of requests: by a bearer token, or by the session cookie of a browser."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from braid.tools.service.guard import COOKIES
from braid.tools.service.logins import Login
from braid.tools.service.refusals import refusals
from braid.tools.service.service_state import Service, ServicePart

COOKIE = "braid_session"
_LOOK = 1.0
"""The interval in seconds of checks whether another process added or removed tokens."""
_bearer = HTTPBearer(auto_error=False, description="A token: braid serve token add NAME.")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False, description="Set by POST /session.")

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
Cookie = Annotated[str | None, Depends(_cookie)]


@dataclass(frozen=True)
class User:
    """An authenticated user: the digest and the name of a token, and the session of a browser."""

    token: str
    name: str
    login: Login | None = None

    def may_go_on(self, service: Service) -> bool:
        """Return whether the token is still valid and the session has not ended."""
        lasts = self.login is None or service.logins.lasts(self.login)
        return lasts and self.token in service.tokens.digests()


def _authorized(request: Request, service: ServicePart, bearer: Bearer, cookie: Cookie) -> User:
    """Return the user of a request. Raises HTTPException 401."""
    if bearer is not None:
        token = service.tokens.known_digest(bearer.credentials)
        return User(token, service.tokens.name_of(token)) if token is not None else _refuse()
    login = service.logins.find(cookie) if cookie else None
    if login is None or cookie is None:
        return _refuse()
    user = User(login.token, service.tokens.name_of(login.token), login)
    if not user.may_go_on(service):
        service.logins.end(cookie)
        return _refuse()
    if (renewed := service.logins.rotated(cookie)) is not None:
        _set_cookie(request, service, renewed)
    return user


def _refuse() -> User:
    raise HTTPException(401, "a valid token is needed", headers={"WWW-Authenticate": "Bearer"})


Authorized = Annotated[User, Depends(_authorized)]
GUARDED: Any = {"dependencies": [Depends(_authorized)]}
"""Keyword arguments of a route that requires authentication."""


def _set_cookie(request: Request, service: Service, secret: str, age: int | None = None) -> None:
    """Set the session cookie on any response; with `age` 0 the browser deletes it."""
    carrier = Response()
    carrier.set_cookie(
        COOKIE,
        secret,
        max_age=int(service.logins.longest) if age is None else age,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    request.scope["state"][COOKIES] = [carrier.headers["set-cookie"]]


async def still_may(user: User, service: Service) -> None:
    """Raise HTTPException 401 if the token or session ended while the request was processed."""
    if not await asyncio.to_thread(user.may_go_on, service):
        _refuse()


async def watch_tokens(service: Service) -> None:
    """Wake requests that follow tasks whenever a token is added or removed; never return."""
    known = frozenset[str]()
    while True:
        found = await asyncio.to_thread(service.tokens.digests)
        if found != known:
            known = found
            service.runner.bell.ring()
        await asyncio.sleep(_LOOK)


def add_sessions(app: FastAPI) -> None:
    """Add the routes that begin and end the session of a browser."""

    @app.post("/session", status_code=204, responses=refusals(401))
    def log_in(request: Request, service: ServicePart, bearer: Bearer, cookie: Cookie) -> Response:
        """Begin a browser session, by a cookie that scripts cannot read."""
        token = service.tokens.known_digest(bearer.credentials) if bearer is not None else None
        if token is None:
            _refuse()
        else:
            if cookie:
                service.logins.end(cookie)
            _set_cookie(request, service, service.logins.begin(token))
        return Response(status_code=204)

    @app.delete("/session", status_code=204, responses=refusals(401))
    async def log_out(request: Request, service: ServicePart, cookie: Cookie) -> Response:
        """End the session on the server and in the browser, with its open event streams."""
        if not cookie:
            _refuse()
        else:
            service.logins.end(cookie)
            service.runner.bell.ring()
            _set_cookie(request, service, "", age=0)
        return Response(status_code=204)
