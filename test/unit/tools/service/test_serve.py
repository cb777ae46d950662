"""`braid serve` and its client, as processes: tasks, limits, tokens, cancelling, restarts."""

import io
import itertools
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

import braid
from braid.client import Client
from test.unit.tools.service.server import (
    MODEL,
    Server,
    children,
    environment,
    members,
    serving,
    start,
    until,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    cache = tmp_path_factory.mktemp("service")
    with serving(cache, "--upload-limit", "64KiB", "--queue-limit", "3") as found:
        yield found


def plain(client: Client) -> str:
    """Return a task that searches nothing."""
    return client.submit(MODEL, on_miss="default")


@pytest.fixture(scope="module")
def compiled(server: Server) -> str:
    """Return a task that has ended."""
    task = plain(server.client)
    server.client.wait(task)
    return task


def test_a_model_is_compiled_and_run(server: Server, compiled: str, tmp_path: Path) -> None:
    client, task = server.client, compiled
    kinds = [event.kind for event in client.events(task)]
    found = client.wait(task)
    assert found["state"] == "done", found
    assert {"state", "step", "kernels", "report"} <= set(kinds)
    (tmp_path / "model.braid").write_bytes(client.artifact(task))
    x = np.arange(36, dtype=np.float32).reshape(1, 4, 3, 3)
    y = braid.load(tmp_path / "model.braid")(x)
    assert np.array_equal(y, -x)
    (z,) = client.run(task, {"input0": x}).values()
    assert np.array_equal(z, -x)
    status, page = server.ask("GET", f"/tasks/{task}/explain")
    assert status == 200 and b"braid explain negated.mlir" in page
    numbers = [event.number for event in client.events(task)]
    later = [event.number for event in client.events(task, after=numbers[1])]
    assert later == numbers[2:]


def test_inputs_with_pickles_are_refused(server: Server, compiled: str) -> None:
    task = compiled
    body = io.BytesIO()
    np.savez(body, input0=np.array([{}], dtype=object))
    for data in (body.getvalue(), b"no zip", b""):
        status, answer = server.ask("POST", f"/tasks/{task}/run", data)
        assert status == 400 and ".npz" in answer["detail"], answer
    with pytest.raises(braid.BraidError, match="no value for input"):
        server.client.run(task, {})


def test_a_wrong_model_is_a_failed_task(server: Server, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text("func.func @main( {")
    task = server.client.submit(wrong)
    with pytest.raises(braid.BraidError, match="Expected argument") as failed:
        server.client.wait(task)
    location = failed.value.location
    assert location is not None and (location.file, location.line) == ("wrong.mlir", 1)
    found = server.client.task(task)
    assert found["state"] == "failed" and "wrong.mlir:1" in found["error"], found
    assert str(server.cache) not in json.dumps(found)
    assert server.ask("GET", f"/tasks/{found['id']}/artifact")[0] == 404


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_wrong_tokens(server: Server, token: str) -> None:
    token = token.encode().decode("latin-1")
    for method, path in (("GET", "/tasks"), ("POST", "/tasks?name=x.onnx"), ("GET", "/metrics")):
        assert server.ask(method, path, token=token)[0] == 401
    with pytest.raises(braid.BraidError, match="valid token"):
        Client(server.url).submit(MODEL)


def test_tokens_are_digests_that_can_be_removed(tmp_path: Path) -> None:
    def token(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "braid.tools.cli", "serve", "token", *words],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
        )

    made = token("add", "ann").stdout.strip()
    assert len(made) > 40 and "ann" in token("list").stdout
    assert not any(made.encode() in file.read_bytes() for file in tmp_path.iterdir())
    again = token("add", "ann")
    assert again.returncode == 1 and "already" in again.stderr
    assert token("remove", "ann").returncode == 0
    assert token("remove", "ann").returncode == 1 and token("list").stdout == ""


def test_uploads_are_limited(server: Server) -> None:
    """By what is said of their size, and by what comes."""
    large = b"\0" * (65 << 10)
    assert server.ask("POST", "/tasks?name=x.onnx", large)[0] == 413
    pieces = itertools.repeat(b"\0" * 1024, 65)
    assert server.send_pieces("/tasks?name=x.onnx", pieces) in (413, None)
    refused = server.ask("GET", "/metrics")[1].decode()
    assert 'braid_refused_requests_total{status="413"} 2.0' in refused


def test_the_queue_is_limited(server: Server) -> None:
    client = server.client
    tasks = [client.submit(MODEL, interactive=True, again=True)]
    until(lambda: client.task(tasks[0])["asks"])
    tasks += [plain(client) for _ in range(3)]
    with pytest.raises(braid.BraidError, match="3 tasks are waiting"):
        plain(client)
    for task in reversed(tasks):
        client.cancel(task)
        assert client.task(task)["state"] == "cancelled"
    with pytest.raises(braid.BraidError, match="asks nothing"):
        client.order(tasks[0], "go")


def test_a_search_is_steered(server: Server) -> None:
    client = server.client
    task = client.submit(MODEL, interactive=True, again=True)
    answers = iter(["nonsense", "What?  {}", "space unroll=2", "threshold 0.01", "stop"])
    said: list[str] = []
    for event in client.events(task):
        if event.kind == "asks" and event.data["asks"]:
            client.order(task, next(answers))
        said.append(str(event.data.get("text", "")))
    text = "\n".join(said)
    assert client.wait(task)["state"] == "done"
    assert (
        "'nonsense' is not a command" in text
        and "'What?' is not" in text
        and "the user stopped it" in text
    )
    assert "threshold 0.01" in text and "elementwise (1) unroll=2" in text


def test_tasks_are_deleted(server: Server) -> None:
    """What is done as what still runs or waits, with its files; nobody is told of it any more."""
    client = server.client
    running = client.submit(MODEL, interactive=True, again=True)
    until(lambda: client.task(running)["asks"])
    waiting, ended = plain(client), plain(client)
    client.cancel(ended)
    (worker,) = children(server.process.pid)
    for task in (running, waiting, ended):
        assert (server.cache / "service" / task).exists()
        assert server.ask("DELETE", f"/tasks/{task}", token="wrong")[0] == 401
        client.delete(task)
        assert server.ask("GET", f"/tasks/{task}")[0] == 404
        assert not (server.cache / "service" / task).exists()
        with pytest.raises(braid.BraidError, match="there is no task"):
            client.delete(task)
    assert not members(worker)
    assert not {running, waiting, ended} & {task["id"] for task in server.ask("GET", "/tasks")[1]}


def test_a_crash_is_a_failed_task(server: Server) -> None:
    client = server.client
    task = client.submit(MODEL, interactive=True, again=True)
    until(lambda: client.task(task)["asks"])
    (worker,) = children(server.process.pid)
    os.kill(worker, signal.SIGSEGV)
    with pytest.raises(braid.BraidError, match="signal 11"):
        client.wait(task)
    assert client.task(task)["state"] == "failed"
    assert client.wait(plain(client))["state"] == "done"


def test_metrics(server: Server) -> None:
    status, text = server.ask("GET", "/metrics")
    assert status == 200 and b'braid_tasks{state="done"}' in text


def test_a_killed_server_goes_on_where_it_was(tmp_path: Path) -> None:
    server = start(tmp_path)
    client = server.client
    tasks = [client.submit(MODEL, interactive=True), plain(client)]
    until(lambda: client.task(tasks[0])["asks"])
    (worker,) = children(server.process.pid)
    server.process.kill()
    server.process.wait()
    until(lambda: not members(worker), 10)  # nothing works on for nobody
    with serving(tmp_path) as again:
        client = again.client
        until(lambda: client.task(tasks[0])["asks"])
        client.order(tasks[0], "stop")
        assert [client.wait(task)["state"] for task in tasks] == ["done", "done"]


@pytest.mark.parametrize("is_own_cache", [False, True])
def test_a_second_server_is_refused(server: Server, is_own_cache: bool, tmp_path: Path) -> None:
    """One database has one server, also where the directories of the models are two."""
    records = server.cache / "records-1.sqlite"
    apart = {**environment(tmp_path), "BRAID_RECORDS": f"sqlite:///{records}"}
    second = subprocess.run(
        [sys.executable, "-m", "braid.tools.cli", "serve", "--port", "0"],
        capture_output=True,
        text=True,
        env=apart if is_own_cache else environment(server.cache),
    )
    assert second.returncode == 1 and "another server" in second.stderr
    assert records.name in second.stderr


def test_the_command_uses_a_server(server: Server, tmp_path: Path) -> None:
    output = tmp_path / "model.braid"
    options = ["--time", "10", "--server", server.url, "-o", str(output)]
    said = subprocess.run(
        [sys.executable, "-m", "braid.tools.cli", "tune", str(MODEL), *options],
        capture_output=True,
        text=True,
        env={**environment(tmp_path), "BRAID_TOKEN": server.token},
    )
    assert said.returncode == 0, said.stderr
    assert "kernels have a record" in said.stdout
    assert braid.load(output).inputs


@pytest.mark.slow
def test_two_hundred_tasks(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2", "--token-limit", "200") as server:
        client = server.client
        tasks = [plain(client) for _ in range(200)]
        assert {client.wait(task)["state"] for task in tasks} == {"done"}


@pytest.mark.slow
def test_a_gigabyte_is_refused(tmp_path: Path) -> None:
    """Piece by piece, without a size beforehand: neither memory nor the disk is filled."""
    with serving(tmp_path) as server:
        pieces = itertools.repeat(b"\0" * (1 << 20), 1 << 10)
        begin = time.monotonic()
        assert server.send_pieces("/tasks?name=x.onnx", pieces) in (413, None)
        status_text = Path(f"/proc/{server.process.pid}/status").read_text()
        (peak,) = [line.split()[1] for line in status_text.splitlines() if "VmHWM" in line]
        print(f"refused after {time.monotonic() - begin:.1f} s, peak {int(peak) >> 10} MiB")
        assert int(peak) < 300 << 10
        assert sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()) < 1 << 20
        assert server.ask("GET", "/tasks") == (200, [])


def test_the_queue_is_in_the_store_of_the_records(server: Server, compiled: str) -> None:
    database = sqlite3.connect(server.cache / "records-1.sqlite")
    known = database.execute("SELECT count(*) FROM service_tasks WHERE id = ?", (compiled,))
    assert known.fetchone() == (1,)
    assert database.execute("SELECT count(*) FROM records").fetchone() is not None
    database.close()


def test_names_may_be_in_any_script(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "модель é.mlir"
    path.write_bytes(MODEL.read_bytes())
    client = server.client
    task = client.submit(path, on_miss="default")
    assert client.wait(task)["options"]["name"] == path.name
    assert client.artifact(task)
    for name in ("a/b.mlir", "a\nb.mlir", "<b>.mlir", ".mlir"):
        assert server.ask("POST", f"/tasks?name={quote(name)}", b"x")[0] == 422


def test_a_token_from_a_file_ends_in_a_newline(server: Server) -> None:
    assert Client(server.url, f"{server.token}\n").submit(MODEL, on_miss="default")
    for wrong in ("a\nb", "é", "a\0"):
        with pytest.raises(braid.BraidError, match="characters that no token has"):
            Client(server.url, wrong)


def test_a_client_that_goes_away_leaves_nothing(server: Server, tmp_path: Path) -> None:
    before = known_tasks(server)
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        head = "POST /tasks?name=x.onnx HTTP/1.1\r\nHost: localhost"
        head += f"\r\nAuthorization: Bearer {server.token}"
        connection.sendall(f"{head}\r\nContent-Length: 9999\r\n\r\nbegin".encode())
        until(lambda: uploads(server))
    until(lambda: not uploads(server))
    assert known_tasks(server) == before


def known_tasks(server: Server) -> set[str]:
    """Return identifiers only: the states of tasks change meanwhile."""
    return {task["id"] for task in server.ask("GET", "/tasks?count=1000")[1]}


def uploads(server: Server) -> list[Path]:
    """Return the directories of tasks that are not in the queue."""
    known = known_tasks(server)
    folders = (server.cache / "service").iterdir()
    return [folder for folder in folders if folder.is_dir() and folder.name not in known]


def test_clients_cancel_one_task_with_all_its_processes(server: Server) -> None:
    client = server.client
    task = client.submit(MODEL, interactive=True, again=True)
    until(lambda: client.task(task)["asks"])
    (worker,) = children(server.process.pid)
    assert len(members(worker)) > 1  # what times kernels is another process
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: server.ask("POST", f"/tasks/{task}/cancel"), range(4)))
    assert {status for status, _ in answers} == {200}
    assert client.task(task)["state"] == "cancelled"
    states = [e.data["state"] for e in client.events(task) if e.kind == "state"]
    assert states == ["queued", "running", "cancelled"]
    until(lambda: not members(worker), 10)


def test_a_full_disk_stops_only_what_needs_it(tmp_path: Path) -> None:
    """A queue that cannot be written: requests are refused, and work goes on when it can again."""
    with serving(tmp_path) as server:
        client = server.client
        tasks = [client.submit(MODEL, interactive=True), plain(client)]
        until(lambda: client.task(tasks[0])["asks"])
        database = sqlite3.connect(tmp_path / "records-1.sqlite")
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON service_events "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        database.commit()
        client.order(tasks[0], "stop")
        until(lambda: not children(server.process.pid))
        with pytest.raises(braid.BraidError, match="disk is full"):
            plain(client)
        assert not uploads(server)
        database.execute("DROP TRIGGER full")
        database.commit()
        database.close()
        with pytest.raises(braid.BraidError, match="disk is full"):
            client.wait(tasks[0])
        assert client.wait(tasks[1])["state"] == "done"


def test_thresholds_and_spaces_are_as_without_a_server(server: Server, tmp_path: Path) -> None:
    client = server.client
    for given in ("0.7,0.5", [0.7, 0.5], ["0.7", "0.5"]):
        task = client.submit(MODEL, threshold=given, on_miss="default")
        assert client.task(task)["options"]["threshold"] == [0.7, 0.5]
        client.delete(task)
    for wrong in ("0.7,", "0.7;0.5", "-1", "nan", ",".join("1" * 17)):
        with pytest.raises(braid.BraidError, match="threshold"):
            client.submit(MODEL, threshold=wrong)
    space = tmp_path / "space.toml"
    space.write_text("[elementwise]\nunroll = [2]\n")
    options = ["--time", "30", "--again", "--threshold", "0.01,0.02", "--space", str(space)]
    said = tune(server, tmp_path, *options)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "level 0: 2 of 2 schedules tried" in said.stdout  # 10 without the space
    assert "threshold 0.01;" in said.stdout and "threshold 0.02;" in said.stdout
    space.write_text("[elementwise]\nunrol = [2]\n")
    said = tune(server, tmp_path, *options)
    assert said.returncode == 1 and "space.toml:2:1" in said.stderr, said.stderr
    assert "have no 'unrol'" in said.stderr
    said = tune(server, tmp_path, "--space", str(tmp_path / "none.toml"))
    assert said.returncode == 1 and "cannot read the space" in said.stderr


def tune(server: Server, cache: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "braid.tools.cli",
            "tune",
            str(MODEL),
            "--server",
            server.url,
            *options,
        ],
        capture_output=True,
        text=True,
        env={**environment(cache), "BRAID_TOKEN": server.token},
    )
