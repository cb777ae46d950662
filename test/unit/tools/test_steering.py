"""What is said between the levels of `braid tune --interactive`, and what follows from it."""

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tools.commands.remote_tuning import order_of
from braid.tools.terminal.steering import parse_order, steering
from braid.tuning.search import Order, Turn

POINTS = [
    KernelSchedule.of("gemm", {"rows": rows, "vectors": vectors})
    for rows in (4, 6)
    for vectors in (1, 2)
] + [KernelSchedule.of("generic", {})]
TURN = Turn(1, POINTS, 1.0, None)
TWO = """
func.func @main(%x: tensor<24x40xf32>, %w: tensor<40x48xf32>, %v: tensor<48x32xf32>)
    -> tensor<24x32xf32> {
  %h = braid.matmul %x, %w : (tensor<24x40xf32>, tensor<40x48xf32>) -> tensor<24x48xf32>
  %y = braid.matmul %h, %v : (tensor<24x48xf32>, tensor<48x32xf32>) -> tensor<24x32xf32>
  func.return %y : tensor<24x32xf32>
}
"""
MODEL = Path(__file__).parents[2] / "tools/braid/Inputs/negated.mlir"


@pytest.mark.parametrize(
    ("line", "order"),
    [
        ("\n", Order()),
        ("go\n", Order()),
        ("stop", Order(stop=True)),
        ("quit", Order(stop=True)),
        ("threshold 0.9", Order(threshold=0.9)),
        ("level 2", Order(level=2)),
        ("help", None),
        ("space rows=6 vectors=1,2", Order(level=1, points=POINTS[2:4])),
    ],
)
def test_orders(line: str, order: Order[KernelSchedule] | None) -> None:
    assert parse_order(line, TURN) == order


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("tresholt 1", "'tresholt' is not a command; did you mean 'threshold'?"),
        ("threshold", "expected a positive number"),
        ("threshold -1", "expected a positive number"),
        ("level 3", "expected a level from 0 to 2"),
        ("stop now", "'stop' takes nothing behind it"),
        ("quit it", "'quit' takes nothing behind it"),
        ("space row=4", "schedules have no 'row'; did you mean 'rows'?"),
        ("space rows=5", "level 1 has rows=4,6, not 5"),
        ("space", "expected values of entries"),
        ("help", "threshold X"),
    ],
)
def test_what_is_unclear_is_asked_again(line: str, answer: str) -> None:
    lines, said = iter([line, "stop"]), list[str]()
    steer = steering(pytest.fail, lambda: next(lines), said.append)
    order = steer(None, TURN)  # pyright: ignore[reportArgumentType]
    assert order == Order(stop=True)
    assert any(answer in each for each in said)
    assert "gemm (4) rows=4,6 vectors=1,2" in said[1]


@pytest.mark.parametrize("line", ["", "quit\n"])
def test_the_end_of_the_input_ends_all(line: str) -> None:
    ends: list[bool] = []
    steer = steering(lambda: ends.append(True), lambda: line, lambda _: None)
    order = steer(None, TURN)  # pyright: ignore[reportArgumentType]
    assert order.stop and ends


def test_nothing_is_begun_behind_the_end(tmp_path: Path) -> None:
    """The first of two kernels is searched through one level; the other is left."""
    path = tmp_path / "m.mlir"
    path.write_text(TWO)
    ended = subprocess.run(
        [sys.executable, "-m", "braid.tools.cli", "tune", str(path), "--interactive"],
        input="go\n",
        capture_output=True,
        text=True,
        env={**os.environ, "BRAID_CACHE_DIR": str(tmp_path / "cache")},
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("go/stop/quit") == 2 and ended.stdout.count("default ") <= 2
    assert "1 kernels searched" in ended.stdout and "1 left" in ended.stdout


@pytest.mark.parametrize(
    ("line", "order"),
    [
        ("", "quit"),
        ("\n", "go"),
        ("  \n", "go"),
        (" space   rows=4 \n", "space rows=4"),
        ("Stop! ä\t\x1b\n", "Stop! ? ?"),
        ("x" * 2000, "x" * 1000),
    ],
)
def test_answers_for_a_server(line: str, order: str) -> None:
    assert order_of(line) == order


def test_in_a_terminal(tmp_path: Path) -> None:
    """Before the first level and after it; what is said is done."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "braid.tools.cli", "tune", str(MODEL), "--interactive"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "BRAID_CACHE_DIR": str(tmp_path)},
    )
    os.close(slave)
    text, answers = "", iter(["space unroll=2\n", "threshold 0.01\n", "stop\n"])
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            text += os.read(master, 4096).decode()
        except OSError:
            break
        if text.endswith("help?\r\n") and (answer := next(answers, None)):
            os.write(master, answer.encode())
    assert process.wait(60) == 0, text
    os.close(master)
    assert re.search(
        r"level 0 has \d+ schedules, threshold 0.7:\s+elementwise \(1\) unroll=2", text
    )
    assert re.search(r"level 1 has \d+ schedules", text)
    assert "threshold 0.01" in text and "the user stopped it" in text
    assert "1 kernels searched" in text
