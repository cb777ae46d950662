"""The runtime's threads, in C: loops and streams, fork, workers that come late, counting CPUs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from braid.runtime.native_abi import find_library

SOURCES = Path(__file__).parents[3] / "runtime" / "native"
POOL = ("counters.c", "cpus.c", "pace.c", "parallel.c", "pool.c")
UNLIMITED = 2**63 - 1


def build(directory: Path, program: str, *flags: str, parts: Sequence[str] = POOL) -> Path:
    """Compile a program of this folder with parts of the runtime."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    output = directory / program
    places = [f"-I{SOURCES / 'include'}", f"-I{SOURCES / 'src'}"]
    sources = [Path(__file__).with_name(f"{program}.c"), *(SOURCES / "src" / p for p in parts)]
    command = [compiler, "-std=gnu11", "-O1", "-g", "-pthread", *places, *flags]
    subprocess.run([*command, *map(str, sources), "-o", str(output)], check=True)
    return output


def run(*command: str | Path) -> str:
    """Return the output of a program; it must succeed, and soon."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_loops_and_streams_of_several_callers_do_not_race(tmp_path: Path) -> None:
    try:
        program = build(tmp_path, "pool_race", "-fsanitize=thread")
    except subprocess.CalledProcessError:
        pytest.skip("the compiler has no thread sanitizer")
    run(program)


def test_loops_and_streams_work_after_fork(tmp_path: Path) -> None:
    run(build(tmp_path, "pool_fork"))


def test_a_loop_does_not_wait_for_workers_that_have_not_begun(tmp_path: Path) -> None:
    run(build(tmp_path, "pool_late", "-Dpthread_create=make_late"))


def test_teams_shrink_on_a_busy_machine_and_grow_again(tmp_path: Path) -> None:
    clock = "-Dclock_gettime=read_clock"
    run(build(tmp_path, "pool_pace", clock))


def test_a_system_that_gives_no_threads_for_a_while(tmp_path: Path) -> None:
    names = ("-Dpthread_create=maybe_create", "-Dclock_gettime=read_clock")
    run(build(tmp_path, "pool_refused", *names))


def test_no_thread_outlives_the_library(tmp_path: Path) -> None:
    # A name of its own, which the loader gives up again.
    library = tmp_path / "runtime.so"
    shutil.copy(find_library(), library)
    model = str(Path(__file__).with_name("scaled_sum.c"))
    run(build(tmp_path, "unload", model, "-ldl", parts=()), library)


def test_runtimes_are_unloaded_while_the_process_forks(tmp_path: Path) -> None:
    copies = [tmp_path / f"runtime{number}.so" for number in range(5)]
    for copy in copies:
        shutil.copy(find_library(), copy)
    model = str(Path(__file__).with_name("scaled_sum.c"))
    run(build(tmp_path, "unload", model, "-ldl", parts=()), *copies)


def test_a_process_ends_in_a_handler_of_a_signal_that_came_during_a_run(tmp_path: Path) -> None:
    run(build(tmp_path, "pool_exit"))


_FORKS = """
import os, signal, sys, threading
import numpy as np
from braid.runtime.native import NativeModel

model = NativeModel.open(sys.argv[1])
x = np.random.default_rng(0).random((1000, 8), np.float32)
expected = 3 * x + np.arange(8, dtype=np.float32)

def check(context):
    np.testing.assert_allclose(context.run([x])[0], expected, rtol=1e-6)

def check_until(stop):
    context = model.context(2)
    while not stop.is_set():
        check(context)

stop = threading.Event()
threads = [threading.Thread(target=check_until, args=(stop,)) for _ in range(2)]
own = model.context(2)
for number in range(100):
    if number == 50:
        for thread in threads:
            thread.start()
    check(own)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            check(own)
            check(model.context(2))
            check(NativeModel.open(sys.argv[1]).context(2))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, (number, status)
stop.set()
for thread in threads:
    thread.join()
"""


def test_python_runs_models_after_fork(artifact_path: Path) -> None:
    run(sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKS, artifact_path)


def test_cpus_are_those_of_the_affinity(tmp_path: Path) -> None:
    program = build(tmp_path, "cpu_counts", parts=["cpus.c"])
    most = int(run(program))
    assert 1 <= most <= len(os.sched_getaffinity(0))
    if shutil.which("taskset") is None:
        pytest.skip("needs taskset")
    cpu = min(os.sched_getaffinity(0))
    assert int(run("taskset", "--cpu-list", str(cpu), program)) == 1


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/", {}, UNLIMITED),
        ("0::/", {"cpu.max": "max 100000"}, UNLIMITED),
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "1000 100000"}, 1),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "500000 100000"}, 3),
        ("0::/not/mounted/here", {"cpu.max": "400000 100000"}, 4),
        (
            "3:cpu,cpuacct:/a",
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": "250000",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            },
            3,
        ),
        (
            "1:cpu:/",
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            UNLIMITED,
        ),
        ("5:memory:/a", {"a/cpu.max": "100000 100000"}, UNLIMITED),
        ("garbage", {"cpu.max": "100000 100000"}, UNLIMITED),
    ],
)
def test_cpus_are_limited_by_control_groups(
    tmp_path: Path, group: str, files: dict[str, str], expected: int
) -> None:
    program = build(tmp_path, "cpu_counts", parts=["cpus.c"])
    root = tmp_path / "cgroup"
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    own = tmp_path / "self"
    own.write_text(f"{group}\n")
    assert int(run(program, own, root)) == expected
