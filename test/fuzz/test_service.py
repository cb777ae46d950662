"""Random and hostile requests to a real server get a response or are closed; none harms it.

Requests are bytes on a socket: methods, paths, queries, heads and bodies of any kind, cut into
pieces, cut off, or followed by others. No answer is an internal error, no answer to a stranger
reveals or changes anything, the server prints no traceback, and nothing of refused requests is
kept.
"""

import io
import json
import os
import re
import socket
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test.unit.tools.service.server import MODEL, Server, serving

EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "25"))
OPEN = ("/", "/openapi.json", "/page/")
"""Routes that strangers may read."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = ["--upload-limit", "64KiB", "--queue-limit", "3", "--client-seconds", "1"]
    used = ["--output-limit", "16MiB", "--task-seconds", "30", "--run-seconds", "10"]
    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            with serving(tmp_path_factory.mktemp("service"), *limits, *used) as found:
                os.dup2(kept, 2)
                yield found
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        text = said.read().decode(errors="replace")
    assert "Traceback" not in text and "Exception in ASGI" not in text, text[-3000:]


@pytest.fixture(scope="module")
def task(server: Server) -> str:
    """Return a task that has ended."""
    found = server.client.submit(MODEL, on_miss="default")
    assert server.client.wait(found)["state"] == "done"
    return found


def arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, input0=np.ones((1, 4, 3, 3), np.float32))
    return file.getvalue()


def lying_archive() -> bytes:
    """Return a member whose header promises more numbers than there are."""
    member = io.BytesIO()
    np.save(member, np.zeros(3, np.float32))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("input0.npy", member.getvalue().replace(b"(3,)", b"(99999999999,)"))
    return file.getvalue()


LINE = st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=30)
NAMES = st.sampled_from(
    ["m.onnx", "m.mlir", "../m.mlir", "m", "", "a\0.mlir", "%", "é.onnx", "a" * 300 + ".onnx"]
)
NUMBERS = st.sampled_from(
    ["0", "1", "-1", "1e308", "1e999", "nan", "9" * 40, "0x1", "true", "", "0.7,0.5", ",", "[]"]
)
OPTIONS = st.sampled_from(
    [
        *("name", "seconds", "threshold", "levels", "trials", "least_gain", "on_miss", "target"),
        *("space", "space_format", "final", "search", "model_class", "after", "count", "x"),
    ]
)
BODIES = st.one_of(
    st.binary(max_size=300),
    st.sampled_from([arrays(), lying_archive(), MODEL.read_bytes(), b"", b"\0" * 70000]),
    st.sampled_from(["go", "stop", "\u2028", "a" * 2000, ""]).map(
        lambda line: json.dumps({"line": line}).encode()
    ),
    st.just(b'{"line": ' * 500),
)


@st.composite
def damaged(draw: st.DrawFn, body: bytes) -> bytes:
    """Return the file with a few bytes changed, cut off, or repeated."""
    found = bytearray(body)
    for _ in range(draw(st.integers(0, 3))):
        if found:
            found[draw(st.integers(0, len(found) - 1))] = draw(st.integers(0, 255))
    if found and draw(st.booleans()):
        found = found[: draw(st.integers(0, len(found)))]
    return bytes(found)


@st.composite
def queries(draw: st.DrawFn) -> str:
    values = st.one_of(NAMES, NUMBERS, LINE)
    pairs = draw(st.lists(st.tuples(OPTIONS, values), max_size=4))
    if draw(st.booleans()):
        pairs.insert(0, ("name", draw(st.sampled_from(["m.onnx", "m.mlir"]))))
    text = "&".join(f"{name}={quote(value)}" for name, value in pairs)
    return f"?{text}" if text else ""


@st.composite
def paths(draw: st.DrawFn, task: str) -> str:
    identity = draw(st.sampled_from([task] * 4 + ["0" * 32, "..", "%2e%2e%2f", "x", task.upper()]))
    end = draw(
        st.sampled_from(["", "events", "orders", "cancel", "artifact", "explain", "run", "none"])
    )
    fixed = ["/", "/tasks", "/session", "/metrics", "/openapi.json", "/page/../app.py", "//", "*"]
    which = draw(st.sampled_from(["task", "fixed", "any"]))
    if which == "task":
        return f"/tasks/{identity}/{end}".rstrip("/")
    return draw(st.sampled_from(fixed)) if which == "fixed" else "/" + quote(draw(LINE))


@st.composite
def heads(draw: st.DrawFn, server: Server) -> tuple[list[str], bool]:
    """Lines, and whether the server knows who asks, as far as it accepts where that is from."""
    netloc = urlsplit(server.url).netloc
    hosts = [netloc] * 6 + ["evil.example", "", "localhost", "[::1]:1", "a\tb", "\x7f"]
    lines = [f"Host: {draw(st.sampled_from(hosts))}"]
    token = draw(st.sampled_from([server.token] * 3 + [server.token[:-1], "", "é", "a" * 5000]))
    kind = draw(st.sampled_from(["Authorization: Bearer"] * 3 + ["Cookie: braid_session=", "X:"]))
    lines.append(f"{kind} {token}")
    for name in draw(st.lists(st.sampled_from(HEADERS), max_size=3)):
        lines.append(f"{name}: {draw(st.one_of(NUMBERS, LINE, st.sampled_from(VALUES)))}")
    return lines, token == server.token and kind.startswith("Authorization")


HEADERS = [
    *("Origin", "Host", "Sec-Fetch-Site", "Cookie", "Last-Event-ID", "Range", "Expect", "TE"),
    *("Content-Type", "Content-Encoding", "Connection", "Upgrade", "X-Forwarded-Proto", "If-Range"),
]
VALUES = [
    *("http://evil.example", "null", "cross-site", "same-origin", "100-continue", "upgrade"),
    *("application/json", "gzip", "bytes=0-,1-", "bytes=5-1", "websocket", "multipart/form-data"),
]


@st.composite
def requests(draw: st.DrawFn, server: Server, task: str) -> tuple[list[bytes], str, str, bool]:
    """Pieces of a request, its method and path, and whether its user is known."""
    method = draw(
        st.sampled_from(["GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS", "TRACE", "x"])
    )
    path = draw(paths(task))
    lines, is_known = draw(heads(server))
    if method == "DELETE" and task in path:
        path = path.replace(task, "1" * 32)  # others need it
    body = draw(damaged(draw(BODIES)))
    framing = draw(st.sampled_from(["length"] * 4 + ["chunked", "both", "wrong", "none"]))
    if framing in ("length", "both"):
        lines.append(f"Content-Length: {len(body)}")
    if framing == "wrong":
        size = draw(st.sampled_from(["-1", "9" * 30, "1,2", "0x5", str(len(body) + 9)]))
        lines.append(f"Content-Length: {size}")
    if framing in ("chunked", "both"):
        lines.append("Transfer-Encoding: chunked")
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if draw(st.booleans()) else body
    version = draw(st.sampled_from(["HTTP/1.1"] * 5 + ["HTTP/1.0", "HTTP/2", "x"]))
    head = "\r\n".join([f"{method} {path}{draw(queries())} {version}", *lines, "", ""])
    sent = head.encode("latin-1", "replace") + body
    cut = draw(st.integers(0, len(sent)))
    return [sent[:cut], sent[cut:]], method, path, is_known


def exchange(server: Server, pieces: list[bytes]) -> bytes:
    """Return the data that arrives until the server ends, or an answer or a stream is complete."""
    address = urlsplit(server.url)
    found = b""
    with closing(socket.create_connection((address.hostname, address.port), timeout=8)) as stream:
        try:
            for piece in pieces:
                stream.sendall(piece)
            while not is_whole(found) and (data := stream.recv(1 << 16)):
                found += data
        except (ConnectionError, TimeoutError) as error:
            assert not isinstance(error, TimeoutError) or found, "neither answered nor ended"
    return found


def is_whole(answer: bytes) -> bool:
    head, separator, body = answer.partition(b"\r\n\r\n")
    size = re.search(rb"(?i)content-length: (\d+)", head)
    if not separator:
        return False
    is_stream = b"text/event-stream" in head and b"data:" in body
    return is_stream or (size is not None and len(body) >= int(size[1]))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_requests(server: Server, task: str, data: st.DataObject) -> None:
    pieces, method, path, is_known = data.draw(requests(server, task))
    answer = exchange(server, pieces)
    match = re.match(rb"HTTP/1\.1 (\d{3})", answer)
    status = int(match[1]) if match else None
    assert status is None or status < 500, answer
    assert server.token.encode() not in answer
    if status is not None and status < 300 and not is_known:
        is_open = path.startswith(OPEN) or (method, path) == ("DELETE", "/session")
        assert is_open or method == "OPTIONS", answer
    folders = {each.name for each in (server.cache / "service").iterdir()}
    status, known = server.ask("GET", "/tasks?count=1000")
    assert status == 200 and task in {each["id"] for each in known}
    assert len(folders - {each["id"] for each in known}) <= 1  # what is being received
    for each in known:
        if each["id"] != task and each["state"] != "running":
            server.ask("DELETE", f"/tasks/{each['id']}")
