"""Access to the service: hosts, origins, browser sessions, removed tokens, slow clients."""

import http.client
import itertools
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

import braid
from braid.tools.service.logins import Logins
from test.unit.tools.service.server import MODEL, Server, environment, serving, until

CLIENT_SECONDS = 1.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    cache = tmp_path_factory.mktemp("service")
    patience = ["--client-seconds", str(CLIENT_SECONDS), "--session-minutes", "0.05"]
    with serving(cache, "--allow-host", "tuner.example", *patience) as found:
        yield found


def asked(server: Server, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    """Return the answer to a request with these headers alone; `_` in their names means `-`."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    return connection.getresponse()


def bearer(server: Server) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}"}


def log_in(server: Server, **headers: str) -> tuple[str, str]:
    """Return the cookie and its whole header."""
    said = asked(server, "POST", "/session", **bearer(server), **headers)
    assert said.status == 204
    header = said.headers["Set-Cookie"]
    return header.split(";")[0], header


@pytest.mark.parametrize("path", ["/", "/tasks", "/openapi.json", "/page/tasks.js", "/none"])
def test_names_of_others_are_refused(server: Server, path: str) -> None:
    """A name of an attacker that leads here is no name of this server, with a token or without."""
    port = urlsplit(server.url).port
    for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.x"):
        assert asked(server, "GET", path, Host=host, **bearer(server)).status == 421
    for host in ("", "a b", "a/b", "a@localhost", "[::1", "localhost:x"):
        assert asked(server, "GET", path, Host=host, **bearer(server)).status == 400
    names = (
        "localhost",
        "127.0.0.1",
        "[::1]",
        "tuner.example",
        "x.localhost",
        socket.gethostname(),
    )
    for host in names:
        said = asked(server, "GET", path, Host=f"{host}:{port}", **bearer(server))
        assert said.status == (404 if path == "/none" else 200)
        assert said.headers["X-Content-Type-Options"] == "nosniff"


def test_a_body_with_two_ends_is_refused(server: Server) -> None:
    both = {"Content_Length": "5", "Transfer_Encoding": "chunked"}
    said = asked(server, "POST", "/tasks?name=x.mlir", **both, **bearer(server))
    assert said.status == 400 and said.headers["Connection"] == "close"
    assert b"both Content-Length and Transfer-Encoding" in said.read()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/tasks"),
        ("GET", f"/tasks/{'0' * 32}/events"),
        ("POST", f"/tasks/{'0' * 32}/cancel"),
        ("POST", "/session"),
        ("DELETE", "/session"),
        ("DELETE", f"/tasks/{'0' * 32}"),
    ],
)
def test_pages_of_others_are_refused(server: Server, method: str, path: str) -> None:
    netloc = urlsplit(server.url).netloc
    port = urlsplit(server.url).port
    foreign = ("http://evil.example", "null", "http://localhost:1", f"http://localhost:{port}", "x")
    for origin in foreign:
        assert asked(server, method, path, Origin=origin, **bearer(server)).status == 403, origin
    for site in ("cross-site", "same-site"):
        assert asked(server, method, path, Sec_Fetch_Site=site, **bearer(server)).status == 403
    answers = (401,) if (method, path) == ("DELETE", "/session") else (200, 204, 404)
    for origin in (f"http://{netloc}", f"https://{netloc}"):
        assert asked(server, method, path, Origin=origin, **bearer(server)).status in answers
    proxied = {"Host": "tuner.example", "Origin": "https://tuner.example"}
    assert asked(server, method, path, **proxied, **bearer(server)).status in answers


def test_web_sockets_of_others_are_refused(server: Server) -> None:
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    said = asked(server, "GET", "/tasks", Origin="http://evil.example", **headers, **key)
    assert said.status == 403
    assert asked(server, "GET", "/tasks", **headers, **key).status == 401


def test_the_cookie_is_a_session(server: Server) -> None:
    cookie, header = log_in(server)
    assert server.token not in header and "HttpOnly" in header and "SameSite=strict" in header
    assert "Secure" not in header and "Secure" in log_in(server, X_Forwarded_Proto="https")[1]
    assert asked(server, "GET", "/tasks", Cookie=cookie).status == 200
    assert asked(server, "GET", "/tasks", Cookie=f"braid_session={server.token}").status == 401
    assert asked(server, "POST", "/session", Cookie=cookie).status == 401  # prolongs nothing
    assert asked(server, "DELETE", "/session", Cookie=cookie).status == 204
    assert asked(server, "DELETE", "/session").status == 401
    assert asked(server, "GET", "/tasks", Cookie=cookie).status == 401
    unused, _ = log_in(server)
    time.sleep(3.2)  # the minutes of the option
    assert asked(server, "GET", "/tasks", Cookie=unused).status == 401


def test_sessions_end_and_change_their_secrets() -> None:
    now = 0.0
    logins = Logins(idle=100, longest=1000, rotation=10, clock=lambda: now)
    first = logins.begin("digest")
    login = logins.find(first)
    assert login is not None and login.token == "digest" and logins.rotated(first) is None
    now = 20
    second = logins.rotated(first)
    assert second is not None and second != first and logins.rotated(first) is None
    assert logins.find(first) is login and logins.find(second) is login
    now = 60  # requests that were on their way have come
    assert logins.find(first) is None and logins.find(second) is login
    now = 170
    assert logins.find(second) is None and not logins.lasts(login)
    secret = logins.begin("digest")
    while logins.find(secret):  # however much it is used
        now += 50
    assert now == 1170
    other = logins.begin("digest")
    kept = logins.find(other)
    logins.end(other)
    assert logins.find(other) is None and kept is not None and not logins.lasts(kept)
    many = [logins.begin("digest") for _ in range(1100)]
    assert logins.find(many[0]) is None and logins.find(many[-1]) is not None


def token(server: Server, *words: str) -> str:
    said = subprocess.run(
        [sys.executable, "-m", "braid.tools.cli", "serve", "token", *words],
        capture_output=True,
        text=True,
        env=environment(server.cache),
        check=True,
    )
    return said.stdout.strip()


def test_a_removed_token_ends_its_streams(server: Server) -> None:
    """Streams of the token itself, and of a browser's session, end; others go on."""
    client = server.client
    own = braid.Client(server.url, token(server, "add", "ann"))
    task, kept = (each.submit(MODEL, interactive=True, again=True) for each in (own, client))
    until(lambda: own.task(task)["asks"])
    ended: list[str] = []

    def follow(name: str, events: Iterator[object]) -> None:
        for _ in events:
            pass
        ended.append(name)

    cookie = asked(server, "POST", "/session", Authorization=f"Bearer {own._token}").headers[
        "Set-Cookie"
    ]
    stream = asked(server, "GET", f"/tasks/{task}/events", Cookie=cookie.split(";")[0])
    streams = {"own": own.events(task), "session": iter(stream), "other": client.events(kept)}
    threads = [threading.Thread(target=follow, args=each) for each in streams.items()]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    assert not ended
    begin = time.monotonic()
    token(server, "remove", "ann")
    for thread in threads[:2]:
        thread.join(20)
    assert sorted(ended) == ["own", "session"], time.monotonic() - begin
    with pytest.raises(braid.BraidError, match="valid token"):
        own.task(task)
    client.cancel(kept)
    threads[2].join(20)
    assert "other" in ended


def connected(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=20)


def received(connection: socket.socket) -> bytes:
    """Return what comes until the server ends the connection."""
    found = b""
    try:
        while data := connection.recv(1 << 16):
            found += data
    except ConnectionError:
        pass
    return found


def drip(connection: socket.socket, pieces: Iterator[bytes]) -> None:
    """Send a piece every tenth of a second until the connection closes."""
    try:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.1)
    except OSError:
        pass


HEAD = "POST /tasks?name=x.onnx HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n"


@pytest.mark.parametrize("what", ["nothing", "half a head", "slow head", "slow second head"])
def test_slow_heads_end(server: Server, what: str) -> None:
    with closing(connected(server)) as connection:
        begin = time.monotonic()
        if what == "half a head":
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        if what == "slow second head":
            connection.sendall(b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while b"}" not in connection.recv(1 << 16):
                pass
        if what.startswith("slow"):
            line = itertools.chain(b"GET / HTTP/1.1\r\nX: ", itertools.repeat(97))
            pieces = (bytes([each]) for each in line)
            threading.Thread(target=drip, args=(connection, pieces), daemon=True).start()
        answer = received(connection)
        assert CLIENT_SECONDS / 2 < time.monotonic() - begin < 10
        assert not answer or b" 408 " in answer


@pytest.mark.parametrize("kind", ["Content-Length: 99999", "Transfer-Encoding: chunked"])
def test_slow_bodies_end(server: Server, kind: str) -> None:
    """Nothing of them is left, and those that come fast enough may take their time."""
    folder = server.cache / "service"
    before = set(folder.iterdir())
    with closing(connected(server)) as connection:
        begin = time.monotonic()
        connection.sendall(f"{HEAD.format(server.token)}{kind}\r\n\r\n".encode())
        piece = b"1\r\na\r\n" if "chunked" in kind else b"a"
        drip(connection, itertools.repeat(piece))
        assert time.monotonic() - begin < 10
    until(lambda: set(folder.iterdir()) == before, 10)
    pieces = (time.sleep(0.25) or b"a" * 2048 for _ in range(10))
    assert server.send_pieces("/tasks?name=x.onnx", pieces) == 201


def test_bodies_that_nobody_wants_end(server: Server) -> None:
    """The server does not parse what comes after a refusal: it could not answer others."""
    head = "POST /tasks?name=x.onnx HTTP/1.1\r\nHost: localhost\r\n"
    with closing(connected(server)) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        port, seconds = connection.getsockname()[1], list[float]()
        pieces = itertools.repeat(b"1\r\na\r\n" * 10000)
        threading.Thread(target=drip, args=(connection, pieces), daemon=True).start()
        until(lambda: established(port), 10)
        end = time.monotonic() + 10
        while established(port) and time.monotonic() < end:
            begin = time.monotonic()
            assert server.ask("GET", "/tasks")[0] == 200
            seconds.append(time.monotonic() - begin)
        assert not established(port)
    assert statistics.median(seconds) < 2  # one may be slow beside other tests


def test_a_body_may_come_after_the_response(server: Server) -> None:
    """Clients that send head and body apart go on using the connection."""
    head = "POST /tasks?name=x.onnx HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    with closing(connected(server)) as connection:
        for _ in range(2):
            connection.sendall(head.encode())
            answer = b""
            while b"}" not in answer:
                answer += connection.recv(1 << 16)
            assert b" 401 " in answer
            connection.sendall(b"123456789")


def test_answers_that_nobody_reads_end(server: Server) -> None:
    """The connection ends although as much as the system keeps for itself may wait."""
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        address = urlsplit(server.url)
        connection.connect((address.hostname, address.port))
        connection.settimeout(20)
        line = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        threading.Thread(
            target=drip, args=(connection, itertools.repeat(line * 100, 100)), daemon=True
        ).start()
        port = connection.getsockname()[1]
        until(lambda: established(port), 10)
        until(lambda: not established(port), 30)
    assert server.ask("GET", "/tasks")[0] == 200


def established(port: int) -> bool:
    """Return whether the server has a connection with this port of a client."""
    rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]  # noqa: SIM115, PTH123
    return any(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)
