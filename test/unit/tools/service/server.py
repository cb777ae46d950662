"""A real `braid serve`, in a process and a cache directory of its own."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from braid.client import Client

MODEL = Path(__file__).parents[3] / "tools/braid/Inputs/negated.mlir"


@dataclass
class Server:
    process: subprocess.Popen[str]
    url: str
    token: str
    cache: Path

    @property
    def client(self) -> Client:
        return Client(self.url, self.token)

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and body of an answer, without a client between."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        given = self.token if token is None else token
        headers["Authorization"] = f"Bearer {given}"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(data) if is_json else data

    def send_pieces(self, path: str, pieces: Iterable[bytes]) -> int | None:
        """Status of the answer to a body of no stated size; None where it is not listened to."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Transfer-Encoding": "chunked"}
        with closing(connection):
            try:
                connection.request("POST", path, iter(pieces), headers, encode_chunked=True)
                return connection.getresponse().status
            except ConnectionError:
                return None


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "BRAID_CACHE_DIR": str(cache)}


def start(cache: Path, *options: str, **variables: str) -> Server:
    process = subprocess.Popen(
        [sys.executable, "-m", "braid.tools.cli", "serve", "--port", "0", *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(cache), **variables},
    )
    assert process.stdout is not None
    cache.mkdir(exist_ok=True)
    kept = cache / "token.txt"
    for line in process.stdout:
        if line.startswith("token: "):
            kept.write_text(line.split()[1])
        if "serves at" in line:
            return Server(process, line.split()[-1].rstrip("/"), kept.read_text(), cache)
    raise AssertionError(f"the server ended with {process.wait()}")


@contextmanager
def serving(cache: Path, *options: str, **variables: str) -> Iterator[Server]:
    server = start(cache, *options, **variables)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(20)


def until(holds: Any, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.1)  # each look is a request or a process


def members(session: int) -> list[int]:
    """Return processes of a session, by ps."""
    said = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-s", str(session)], capture_output=True, text=True
    )
    rows = [line.split() for line in said.stdout.splitlines()]
    return [int(pid) for pid, state in rows if not state.startswith("Z")]


def children(process: int) -> list[int]:
    said = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True)
    return [int(word) for word in said.stdout.split()]
