"""Endless loops of a model end by Ctrl-C, by exceptions of signal handlers, and by a limit."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import braid
from braid.runtime.interruption import limited_runs

FOR = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<i64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %i : i64 to index
  %zero = arith.constant 0 : i64
  %r, %last = scf.for %k = %c0 to %end step %c1 iter_args(%a = %x, %l = %zero)
      -> (tensor<4xf32>, i64) {
    %b = braid.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    %m = arith.index_cast %k : index to i64
    scf.yield %b, %m : tensor<4xf32>, i64
  }
  %t = tensor.from_elements %last : tensor<i64>
  func.return %r, %t : tensor<4xf32>, tensor<i64>
}
"""
WHILE = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<i64>) {
  %end = tensor.extract %n[] : tensor<i64>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %minus = arith.constant -1 : i64
  %r, %last = scf.while (%a = %x, %i = %zero) : (tensor<4xf32>, i64) -> (tensor<4xf32>, i64) {
    %more = arith.cmpi slt, %i, %end : i64
    scf.condition(%more) %a, %i : tensor<4xf32>, i64
  } do {
  ^bb0(%a: tensor<4xf32>, %i: i64):
    %b = braid.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    %next = arith.addi %i, %one : i64
    scf.yield %b, %next : tensor<4xf32>, i64
  }
  %l = arith.addi %last, %minus : i64
  %t = tensor.from_elements %l : tensor<i64>
  func.return %r, %t : tensor<4xf32>, tensor<i64>
}
"""
NESTED = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 4611686018427387904 : index
  %r = scf.for %k = %c0 to %end step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %s = scf.for %l = %c0 to %end step %c1 iter_args(%b = %a) -> (tensor<4xf32>) {
      %c = braid.neg %b : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %c : tensor<4xf32>
    }
    scf.yield %s : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
"""
X = np.arange(4, dtype=np.float32)
YEARS = np.array(1 << 62)


@pytest.fixture(scope="module", params=[FOR, WHILE], ids=["for", "while"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> braid.Model:
    path = tmp_path_factory.mktemp("loops") / "loop.mlir"
    path.write_text(request.param)
    return braid.compile(path, cache=False)


@contextmanager
def soon(number: int) -> Generator[None]:
    """Send a signal after a fifth of a second, and require the end within another fifth."""
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), number))
    begin = time.monotonic()
    timer.start()
    yield
    assert 0.2 <= time.monotonic() - begin < 1.2


def _raise(number: int, frame: object) -> None:
    raise TimeoutError("mine")


def test_interrupts_end_loops(model: braid.Model) -> None:
    """Whatever a handler raises; the next run is as any other."""
    # Whoever started the tests may have had them ignore it.
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(2):
            with soon(signal.SIGINT), pytest.raises(KeyboardInterrupt):
                model(X, YEARS)
            y, last = model(X, np.array(7))
            assert np.array_equal(y, -X) and last == 6
    finally:
        signal.signal(signal.SIGINT, old)
    old = signal.signal(signal.SIGUSR1, _raise)
    try:
        with soon(signal.SIGUSR1), pytest.raises(TimeoutError, match="mine"):
            model(X, YEARS)
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_handlers_that_raise_nothing_end_nothing(model: braid.Model) -> None:
    seen: list[int] = []
    old = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        with (
            soon(signal.SIGUSR1),
            limited_runs(0.5),
            pytest.raises(braid.BraidError, match="longer"),
        ):
            model(X, YEARS)
        assert seen == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_threads_have_limits_of_their_own(model: braid.Model) -> None:
    said: list[str] = []

    def run() -> None:
        with limited_runs(0.3), pytest.raises(braid.BraidError) as caught:
            model(X, YEARS)
        said.append(str(caught.value))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    y, _ = model(X, np.array(7))
    assert np.array_equal(y, -X)
    for thread in threads:
        thread.join(10)
    assert len(said) == 2 and all("longer than 0.3 s" in text for text in said)


@pytest.mark.parametrize("text", [FOR.replace("%end = ", "%z = ").replace("to %end", "to %c0")])
def test_loops_without_iterations(text: str, tmp_path: Path) -> None:
    path = tmp_path / "loop.mlir"
    path.write_text(text)
    y, last = braid.compile(path, cache=False)(X, YEARS)
    assert np.array_equal(y, X) and last == 0


def test_the_command_ends_on_an_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "loop.mlir"
    path.write_text(NESTED)
    command = [sys.executable, "-m", "braid.tools.cli", "run", str(path), "--random"]
    begin = time.monotonic()
    limited = subprocess.run([*command, "--time-limit", "0.5"], capture_output=True, text=True)
    assert limited.returncode == 1 and "longer than 0.5 s" in limited.stderr, limited.stderr
    started = time.monotonic() - begin
    # A shell that runs the tests in the background has them ignore the signal.
    program = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        time.sleep(started)  # the model is in the cache now, so that it runs by then
        assert program.poll() is None
        begin = time.monotonic()
        program.send_signal(signal.SIGINT)
        assert program.wait(60) == 130
        assert time.monotonic() - begin < 30, "other work may take the cores"
        assert program.stderr is not None and program.stderr.read() == ""
    finally:
        program.kill()
