"""Protection against DNS rebinding and cross-site requests from browsers."""

import ipaddress
import json
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from prometheus_client import Counter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIES = "cookies"
"""The key in a request's state of the Set-Cookie values for its response, also an error."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?")
_PORTS = {"http": "80", "https": "443"}
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def own_names(more: Iterable[str] = ()) -> frozenset[str]:
    """Return the host names by which clients reach this machine, and `more` names."""
    own = socket.gethostname().lower()
    return frozenset({"localhost", own, own.partition(".")[0], *(name.lower() for name in more)})


@dataclass
class Guard:
    """ASGI middleware that rejects requests for other hosts and from pages of other sites.

    `Host` must be one of `names` or an IP address. By DNS rebinding, an attacker's name resolves to
    this machine, and a browser treats a page from that name as of the same origin; the page cannot
    send another name as `Host`, nor can an IP address be rebound. `Origin` and `Sec-Fetch-Site`, by
    which browsers name the page that sends a request, must be this server's.
    """

    app: ASGIApp
    refused: Counter
    names: frozenset[str] = field(default_factory=own_names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request to the application, or reject it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        scope.setdefault("state", {})
        if (refusal := self._refusal(scope)) is None:
            await self.app(scope, receive, _with_headers(scope, send))
        elif scope["type"] == "http":
            await self._refuse(scope, send, *refusal)
        else:  # a web socket
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and reason with which a request is rejected, None if it is not."""
        headers = _headers_of(scope)
        if "transfer-encoding" in headers and "content-length" in headers:
            # RFC 9112, 6.1: a proxy may take another end of the body than this server does.
            return 400, "the request has both Content-Length and Transfer-Encoding"
        host = _host(headers.get("host", ""))
        if host is None:
            return 400, "the request has no valid Host header"
        name, port = host
        if not (name in self.names or name.endswith(".localhost") or _is_address(name)):
            known = f"this server is not known as '{name}'"
            return 421, f"{known}; braid serve --allow-host {name} adds the name"
        if (origin := headers.get("origin")) is not None and not _is_own(origin, name, port):
            return 403, f"a page of '{origin[:200]}' may not use this server"
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
        is_link = mode == "navigate" and scope.get("method") in ("GET", "HEAD")
        if site not in ("none", "same-origin") and not is_link:
            return 403, "a page of another site may not use this server"
        return None

    async def _refuse(self, scope: Scope, send: Send, status: int, reason: str) -> None:
        self.refused.labels(str(status)).inc()
        body = json.dumps({"detail": reason}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        send = _with_headers(scope, send)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by name; repeated ones are joined, and so match no check."""
    found: dict[str, str] = {}
    for name, value in cast("list[tuple[bytes, bytes]]", scope["headers"]):
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _host(text: str) -> tuple[str, str] | None:
    """Return name and port of a Host header, port "" if absent; None if it is malformed."""
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    return match[1].lower().rstrip("."), (match[2] or "")[1:]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _is_own(origin: str, name: str, port: str) -> bool:
    """Return whether an origin is this server, by http or https, as a proxy may end TLS."""
    scheme, separator, rest = origin.partition("://")
    found = _host(rest)
    if not separator or scheme not in _PORTS or found is None:
        return False
    known = _PORTS[scheme]
    return found[0] == name and (found[1] or known) == (port or known)


def _with_headers(scope: Scope, send: Send) -> Send:
    """Return `send` with the security headers and cookies added to each response."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = cast("list[tuple[bytes, bytes]]", list(message.get("headers", ())))
            present = {name.lower() for name, _ in headers}
            headers += [each for each in _HEADERS if each[0] not in present]
            cookies = cast("list[str]", scope["state"].get(COOKIES, []))
            headers += [(b"set-cookie", each.encode("latin-1")) for each in cookies]
            message = {**message, "headers": headers}
        await send(message)

    return sending
