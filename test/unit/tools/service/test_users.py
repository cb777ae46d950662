"""Several users of one service: own tasks, quotas, /healthz, and TLS by a proxy before it."""

import json
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from braid.client import Client
from braid.support.errors import BraidError
from test.unit.tools.service.server import MODEL, Server, environment, serving, until

EXAMPLE = Path(__file__).parents[4] / "docs/examples/nginx.conf"
NGINX, OPENSSL = shutil.which("nginx", path="/usr/sbin:/usr/bin"), shutil.which("openssl")
LIMIT = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("users"), "--token-limit", str(LIMIT)) as found:
        yield found


def other_user(server: Server, name: str) -> Client:
    command = [sys.executable, "-m", "braid.tools.cli", "serve", "token", "add", name]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment(server.cache)
    )
    return Client(server.url, said.stdout.strip())


def test_users_see_their_own_tasks(server: Server) -> None:
    mine, others = server.client, other_user(server, "other")
    task = mine.submit(MODEL, on_miss="default", seconds=0)
    assert mine.wait(task)["owner"] == "first"
    assert task in [each["id"] for each in server.ask("GET", "/tasks")[1]]
    foreign = others._token
    assert server.ask("GET", "/tasks", token=foreign) == (200, [])
    for method, path in (
        *(("GET", ""), ("GET", "/events"), ("GET", "/artifact"), ("GET", "/explain")),
        *(("POST", "/cancel"), ("POST", "/run"), ("DELETE", "")),
    ):
        status, said = server.ask(method, f"/tasks/{task}{path}", token=foreign)
        assert status == 404 and task in said["detail"], path
    order = json.dumps({"line": "go"})
    kind = {"Content-Type": "application/json"}
    status, _ = server.ask("POST", f"/tasks/{task}/orders", order, foreign, **kind)
    assert status == 404
    assert mine.artifact(task)


def test_a_token_has_a_quota(server: Server) -> None:
    busy, free = other_user(server, "busy"), other_user(server, "free")
    options = {"interactive": True, "seconds": 60}
    tasks = [busy.submit(MODEL, **options) for _ in range(LIMIT)]
    with pytest.raises(BraidError, match=f"{LIMIT} tasks of 'busy' wait or run"):
        busy.submit(MODEL, **options)
    others = free.submit(MODEL, on_miss="default", seconds=0)
    for task in tasks:
        busy.cancel(task)
    assert free.wait(others)["state"] == "done"
    again = busy.submit(MODEL, on_miss="default", seconds=0)
    assert busy.wait(again)["state"] == "done"


def test_a_search_says_which_kernel_and_how_long(server: Server, tmp_path: Path) -> None:
    client, model = server.client, tmp_path / "named.mlir"
    model.write_text(MODEL.read_text().replace("%x :", '%x {braid.name = "head/negated"} :'))
    task = client.submit(model, interactive=True, seconds=300, again=True)
    until(lambda: client.task(task)["asks"])
    found = client.task(task)
    assert found["step"] == f"searching kernel 1 of {found['total']}"
    assert 0 < found["ends"] - found["created"] <= 300 + 60
    assert found["given"] == {"interactive": True, "seconds": 300.0, "again": True}
    client.order(task, "quit")
    client.wait(task)
    task = client.submit(model, seconds=60, levels=1, trials=2, whole_model=False)
    kernels = client.wait(task)["kernels"]
    assert [kernel["ops"] for kernel in kernels] == [["head/negated"]]


def test_health_needs_no_token(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/healthz") as answer:
        said = json.loads(answer.read())
    assert said["status"] == "ok" and said["version"]


@contextmanager
def proxied(server: Server, directory: Path) -> Iterator[ssl.SSLContext]:
    """Start the example of a proxy before the server, on its own port."""
    assert NGINX is not None and OPENSSL is not None
    name = ["-subj", "/CN=tuner.example", "-addext", "subjectAltName=DNS:localhost"]
    keys = ["-keyout", "key.pem", "-out", "cert.pem", "-days", "1"]
    command = [OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *keys, *name]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    text = EXAMPLE.read_text().replace("127.0.0.1:8017", server.url.removeprefix("http://"))
    (directory / "nginx.conf").write_text(text.replace("listen 8443", f"listen {PORT}"))
    command = [NGINX, "-p", str(directory), "-c", "nginx.conf", "-g", "daemon off;"]
    process = subprocess.Popen(command)
    context = ssl.create_default_context(cafile=str(directory / "cert.pem"))
    try:
        yield context
    finally:
        process.terminate()
        process.wait(20)


PORT = 18443


@pytest.mark.skipif(not (NGINX and OPENSSL), reason="needs Debian's nginx and openssl")
def test_the_example_of_a_proxy(server: Server, tmp_path: Path) -> None:
    with proxied(server, tmp_path) as context:
        url = f"https://localhost:{PORT}"

        def asked(path: str, **options: object) -> object:
            request = urllib.request.Request(f"{url}{path}", **options)  # pyright: ignore[reportArgumentType]
            return urllib.request.urlopen(request, context=context)

        def answers() -> bool:
            try:
                return bool(asked("/healthz"))
            except OSError:
                return False

        until(answers, 20)
        bearer = {"Authorization": f"Bearer {server.token}"}
        session = asked("/session", method="POST", headers=bearer)
        cookie = session.headers["Set-Cookie"]  # pyright: ignore[reportAttributeAccessIssue]
        assert "Secure" in cookie and "HttpOnly" in cookie
        body = MODEL.read_bytes()
        path = f"/tasks?name={MODEL.name}&on_miss=default&seconds=0"
        made = asked(path, method="POST", data=body, headers=bearer)
        task = json.loads(made.read())["id"]  # pyright: ignore[reportAttributeAccessIssue]
        events = asked(f"/tasks/{task}/events", headers=bearer)
        said = events.read().decode()  # pyright: ignore[reportAttributeAccessIssue]
        assert '"state": "done"' in said or '"state":"done"' in said
