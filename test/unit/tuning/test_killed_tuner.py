"""Tuners that are killed lose nothing that they said; two at once do nothing twice."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from braid.support.claims import claims
from braid.support.records.file_store import FileStore
from braid.targets.costs.schedule_records import SCHEDULE_KIND, load_tuned

_TUNE = [sys.executable, "-m", "braid.tools.cli", "tune"]
_KERNELS = 20
_KILLS = 100


def model(path: Path) -> Path:
    """Products of as many shapes, each a kernel, by which it is told apart."""
    names = [f"%w{n}: tensor<8x{16 + n}xf32>" for n in range(_KERNELS)]
    types = [f"tensor<8x{16 + n}xf32>" for n in range(_KERNELS)]
    ops = [
        f"  %y{n} = braid.matmul %x, %w{n} : (tensor<4x8xf32>, {type}) -> tensor<4x{16 + n}xf32>"
        for n, type in enumerate(types)
    ]
    results = [f"tensor<4x{16 + n}xf32>" for n in range(_KERNELS)]
    values = ", ".join(f"%y{n}" for n in range(_KERNELS))
    path.write_text(
        f"func.func @main(%x: tensor<4x8xf32>, {', '.join(names)}) -> ({', '.join(results)}) {{\n"
        + "\n".join(ops)
        + f"\n  func.return {values} : {', '.join(results)}\n}}\n"
    )
    return path


def start(file: Path, cache: Path, output: Path) -> subprocess.Popen[bytes]:
    with output.open("ab") as stream:
        return subprocess.Popen(
            [*_TUNE, str(file), "--trials", "1", "--jobs", "1"],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, "BRAID_CACHE_DIR": str(cache), "PYTHONUNBUFFERED": "1"},
        )


def acknowledged(output: Path) -> list[str]:
    """Return the kernels for which the output reports a result."""
    kernel, found = "", list[str]()
    for line in output.read_text(errors="replace").splitlines():
        if line.startswith("matmul"):
            kernel = line
        elif re.match(r"  (the default schedule stays|the library stays|gemm|generic|tiled)", line):
            found.append(kernel)
    return found


@dataclass
class Kill:
    """Where a tuner is killed: so long after so many lines, however fast the machine is."""

    lines: int
    seconds: float

    @staticmethod
    def anywhere(generator: random.Random) -> "Kill":
        """Before the first line, which takes longest, in every fourth case."""
        lines = max(0, generator.randrange(-4, 12))
        return Kill(lines, generator.uniform(0, 0.5 if lines else 4))

    def of(self, process: subprocess.Popen[bytes], output: Path) -> None:
        """Kill a process that writes to the end of a file."""
        before = output.read_bytes().count(b"\n")
        while process.poll() is None and output.read_bytes().count(b"\n") < before + self.lines:
            time.sleep(0.005)
        time.sleep(self.seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()


def check(store: FileStore, said: list[str]) -> int:
    """Check that no reported record is damaged or lost; return their number."""
    assert list(store.damage()) == []
    kept = {kernel.what for kernel in load_tuned(store).values()}
    assert set(said) <= kept, "what was said is in the store"
    assert max(Counter(said).values(), default=1) == 1, "what is known is not searched again"
    return len(kept)


def killed_often(directory: Path, kills: int) -> tuple[int, int]:
    """Kernels that were said to be known, and kills while some were left."""
    file, generator, said, counted, number = model(directory / "m.mlir"), random.Random(0), 0, 0, 0
    while counted < kills:
        number += 1
        cache, output, known = directory / f"cache {number}", directory / f"output {number}", 0
        output.touch()
        while counted < kills and known < _KERNELS:
            Kill.anywhere(generator).of(process := start(file, cache, output), output)
            counted += process.returncode == -signal.SIGKILL
            with output.open("a") as stream:
                stream.write("\n")  # a line that was cut off ends here
            known = check(FileStore(cache / "records-1.sqlite"), acknowledged(output))
        assert start(file, cache, output).wait() == 0
        lines = acknowledged(output)
        assert check(FileStore(cache / "records-1.sqlite"), lines) == _KERNELS
        said += len(lines)
    return said, counted


@pytest.mark.slow
def test_killed_at_random_points(tmp_path: Path) -> None:
    said, kills = killed_often(tmp_path, _KILLS)
    print(f"{kills} kills, {said} kernels said to be recorded, none of them lost or damaged")
    assert said >= _KERNELS


@pytest.mark.slow
def test_two_at_once(tmp_path: Path) -> None:
    file, cache = model(tmp_path / "m.mlir"), tmp_path / "cache"
    outputs = [tmp_path / "one", tmp_path / "two"]
    processes = [start(file, cache, output) for output in outputs]
    assert [process.wait() for process in processes] == [0, 0]
    store = FileStore(cache / "records-1.sqlite")
    rows = [row for row in store.rows() if row is not None and row.kind == SCHEDULE_KIND]
    assert len(rows) == len({row.key for row in rows}) == _KERNELS
    said = [acknowledged(output) for output in outputs]
    assert sum(map(len, said)) == _KERNELS and not set(said[0]) & set(said[1])


def test_claims(tmp_path: Path) -> None:
    """Another process sees them, and gets them when this one gives them back, or dies."""
    path = tmp_path / "claims"
    program = (
        "import sys, time; from pathlib import Path; from braid.support.claims import claims\n"
        f"with claims(Path({str(path)!r})) as own, own.claim(sys.argv[1]) as has:\n"
        "    print(has, flush=True)\n    time.sleep(float(sys.argv[2]))"
    )

    def other(key: str, seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, key, str(seconds)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def answer(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    with claims(path) as own:
        with own.claim("a") as has:
            assert has
            assert answer(other("a", 0)) == "False" and answer(other("b", 0)) == "True"
        holder = other("a", 600)
        assert answer(holder) == "True"
        with own.claim("a") as has:
            assert not has
        holder.kill()
        holder.wait()
        with own.claim("a") as has:
            assert has


def test_without_a_place_everybody_has_all(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with claims(tmp_path / "file" / "claims") as own, own.claim("a") as has:
        assert has
