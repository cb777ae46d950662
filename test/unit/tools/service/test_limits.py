"""Limits of tasks and runs on memory, time and output; the server survives each of them."""

import asyncio
import io
import os
import stat
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import braid
from braid.tools.service.sessions import end_session
from braid.tools.service.usage import Usage, exceeded
from test.unit.tools.service.server import MODEL, Server, serving

WIDE = """
func.func @main(%x: tensor<1xf32>) -> tensor<{n}xf32> {{
  %y = braid.broadcast %x : (tensor<1xf32>) -> tensor<{n}xf32>
  func.return %y : tensor<{n}xf32>
}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = ["--run-memory", "1GiB", "--output-limit", "64MiB", "--run-seconds", "20"]
    old = os.umask(0)
    try:
        with serving(tmp_path_factory.mktemp("service"), *limits) as found:
            yield found
    finally:
        os.umask(old)


def compiled(server: Server, path: Path, text: str) -> str:
    path.write_text(text)
    task = server.client.submit(path, on_miss="default")
    found = server.client.wait(task)
    assert found["state"] == "done", found
    return task


def test_output_and_memory_of_a_run_are_limited(server: Server, tmp_path: Path) -> None:
    x = np.ones(1, np.float32)
    small = compiled(server, tmp_path / "small.mlir", WIDE.format(n=1 << 20))
    (y,) = server.client.run(small, {"input0": x}).values()
    assert np.array_equal(y, np.ones(1 << 20))
    large = compiled(server, tmp_path / "large.mlir", WIDE.format(n=1 << 25))
    with pytest.raises(braid.BraidError, match="writes more than 64 MiB"):
        server.client.run(large, {"input0": x})
    huge = compiled(server, tmp_path / "huge.mlir", WIDE.format(n=1 << 28))
    with pytest.raises(
        braid.BraidError, match=r"memory.* 1 GiB|more than 1 GiB of memory|out of memory"
    ):
        server.client.run(huge, {"input0": x})
    body = io.BytesIO()
    np.save(body, np.zeros(1, np.float32))
    lies = body.getvalue().replace(b"(1,), ", b"(1,),").replace(b"(1,)", b"(9000000000,)")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("input0.npy", lies)
    assert server.ask("POST", f"/tasks/{small}/run", packed.getvalue())[0] == 400
    (y,) = server.client.run(small, {"input0": x}).values()
    end = time.monotonic() + 20  # the last answer was sent before its files are removed
    while list((server.cache / "service").glob("*/run-*")):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_files_are_private(server: Server, tmp_path: Path) -> None:
    """Whatever the umask of the server, which is 0 here."""
    compiled(server, tmp_path / "model.mlir", MODEL.read_text())
    folder = server.cache / "service"
    found = [folder, *folder.rglob("*")]
    assert {"model.mlir", "task.json", "worker.log", "model.braid"} <= {f.name for f in found}
    for path in found:
        right = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == right, path


def test_a_task_has_a_time_limit(tmp_path: Path) -> None:
    with serving(tmp_path, "--task-seconds", "5") as server:
        client = server.client
        task = client.submit(MODEL, interactive=True, again=True)
        with pytest.raises(braid.BraidError, match="longer than 5 s"):
            client.wait(task)
        assert client.task(task)["state"] == "failed"


@pytest.mark.parametrize(
    ("program", "usage", "reason"),
    [
        ("x = bytearray(300 << 20)", Usage(memory=200 << 20), "memory"),
        (
            "import subprocess as s; s.run([e, '-c', 'x = b\"a\" * (300 << 20); input()'])",
            Usage(memory=200 << 20),
            "memory",
        ),
        ("open('file', 'wb').write(b'a' * (9 << 20))", Usage(output=8 << 20), "writes"),
        ("pass", Usage(seconds=2.0), "longer"),
    ],
)
def test_usage_counts_all_processes_of_a_session(
    tmp_path: Path, program: str, usage: Usage, reason: str
) -> None:
    """Measure a session with child processes, which begin when the directory was looked at."""

    async def watched() -> str:
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-c",
                f"import sys, time; e = sys.executable\ntime.sleep(1)\n{program}\ninput()",
            ),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd=tmp_path,
        )
        try:
            return await asyncio.wait_for(exceeded(process.pid, tmp_path, usage), 30)
        finally:
            end_session(process.pid)
            await process.wait()

    assert reason in asyncio.run(watched())
