"""Measures this machine: the operations and bytes of a core per second, and the cost of starts.

What is measured are facts of `Machine` and those that `targets/machines/calibration.py` names.
Figures of one core come from kernels in a separate process, which run in turns in several rounds.
The best round counts, since other load only makes figures worse.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from braid.lowering.host.codegen.compiler import compile_kernels
from braid.support.errors import BraidError
from braid.support.sizes.expression import known
from braid.targets.machines.calibration import Calibration, core_count, flops_fact
from braid.targets.machines.machine import Machine
from braid.tuning.rate_kernels import TYPES, RateKernel, multiply_adds, scaled_copy
from braid.tuning.rate_programs import Program, launching_program, parallel_program
from braid.tuning.timing import TimingRequest
from braid.tuning.timing_worker import timing_worker

ROUNDS = 3
_KERNEL_SECONDS = 0.15
_REPEATED_BYTES = 1 << 26
"""The bytes that a copy moves in one call, so that the call itself does not count."""
_REPEATED_OPS = 100_000
_LAUNCHES = 48
_LAUNCHING_RUNS = 800
_PARALLEL_KERNELS = 16
_PARALLEL_ELEMENTS = (1 << 13, 1 << 16)
"""A small kernel, in which joining threads counts, and one in which dividing the work does."""
_PARALLEL_RUNS = 300
_MOST_BYTES = 512 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

Notify = Callable[[str], None]


@dataclass(frozen=True)
class _Level:
    """A memory: the fact about it, its name for people, and the bytes that are copied in it."""

    fact: str
    name: str
    bytes: int


def calibrate(machine: Machine, notify: Notify = lambda text: None) -> Calibration:
    """Return what is measured of `machine`, on which this process runs; takes less than a minute.

    `notify` is called with what comes next. Facts that cannot be measured, such as types without
    code for this CPU, or threads on a single core, are left out.
    """
    facts: dict[str, float] = {}
    details: dict[str, str] = {}
    notify("operations and bandwidths of a core")
    for fact, kernel, seconds in _timed(list(_kernels(machine))):
        facts[fact] = kernel.amount / seconds
        details[fact] = kernel.what
    notify("starting a kernel")
    facts["launch_seconds"] = _launch_seconds()
    details["launch_seconds"] = f"{_LAUNCHES} small kernels after one that empties the caches"
    threads = core_count()
    if threads > 1:
        notify("joining threads")
        facts["join_seconds"], facts["thread_efficiency"] = _joining(threads)
        what = " and ".join(map(str, _PARALLEL_ELEMENTS))
        details["join_seconds"] = f"kernels of {what} elements on 1 and {threads} threads"
        details["thread_efficiency"] = details["join_seconds"]
    return Calibration(facts, details)


def _kernels(machine: Machine) -> Iterator[tuple[str, RateKernel]]:
    for element_type in TYPES:
        yield flops_fact(element_type), multiply_adds(element_type, machine, _REPEATED_OPS)
    for level in memory_levels(machine):
        grid = max(_REPEATED_BYTES // level.bytes, 1)
        yield level.fact, scaled_copy(level.bytes, machine, grid)


def _timed(kernels: Sequence[tuple[str, RateKernel]]) -> Iterator[tuple[str, RateKernel, float]]:
    """Yield the least seconds of each call; without those that no code can be made of, or that
    crash.
    """
    requests = _requests([kernel for _, kernel in kernels])
    least: dict[int, float] = {}
    with timing_worker() as worker:
        for _ in range(ROUNDS):
            for number, request in enumerate(requests):
                seconds = None if request is None else worker.seconds(request)
                if seconds:
                    least[number] = min(seconds, least.get(number, seconds))
    for number, (fact, kernel) in enumerate(kernels):
        if number in least:
            yield fact, kernel, least[number]


def _requests(kernels: Sequence[RateKernel]) -> list[TimingRequest | None]:
    """Return requests for compiled kernels; None for one without code."""
    try:
        objects: list[bytes | None] = [*compile_kernels([each.kernel for each in kernels])]
    except BraidError:
        objects = [_compiled(each) for each in kernels]
    return [
        None
        if code is None
        else TimingRequest(
            code,
            each.kernel.symbol,
            known(each.kernel.grid),
            0,
            each.arguments,
            cold=False,
            budget_seconds=_KERNEL_SECONDS,
        )
        for each, code in zip(kernels, objects, strict=True)
    ]


def _compiled(kernel: RateKernel) -> bytes | None:
    try:
        (code,) = compile_kernels([kernel.kernel])
    except BraidError:
        return None
    return code


def memory_levels(machine: Machine) -> list[_Level]:
    """Return what is copied at each level that costs ask about: a core's part of the last cache,
    and more.

    Sizes are those that the system reports, else those that are assumed of the machine.
    """
    sizes = cache_sizes()
    own = sizes.get(2, int(machine.fact("cache_bytes")))
    last = int(machine.fact("last_cache_bytes"))
    largest = max([last, *sizes.values()])
    return [
        _Level("cached_bandwidth", "last cache", max(last, own)),
        _Level("memory_bandwidth", "memory", min(4 * largest, _MOST_BYTES, _free_bytes() // 8)),
    ]


def cache_sizes() -> Mapping[int, int]:
    """Return the bytes of the first core's caches for data, by level; empty where the system does
    not tell.
    """
    sizes: dict[int, int] = {}
    for directory in sorted(_CACHES.glob("index*")):
        try:
            level, kind, size = (
                (directory / name).read_text().strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction" and size.endswith("K"):
                sizes[int(level)] = int(size[:-1]) << 10
        except (OSError, ValueError):
            continue
    return sizes


def _free_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _launch_seconds() -> float:
    """Return the median of differences between neighbouring runs: a disturbance affects both."""
    empty, full = (launching_program(count, _LAUNCHES) for count in (0, _LAUNCHES))
    differences = [_seconds(full) - _seconds(empty) for _ in range(_LAUNCHING_RUNS)]
    return max(median(differences), 0.0) / _LAUNCHES


def _joining(threads: int) -> tuple[float, float]:
    """Return the time to join, and the fraction of a thread that each additional one adds.

    A kernel of s seconds on one thread takes join + s / (1 + (threads - 1) * efficiency) on all:
    two sizes give two equations.
    """
    programs = [
        parallel_program(_PARALLEL_KERNELS, elements, count)
        for elements in _PARALLEL_ELEMENTS
        for count in (1, threads)
    ]
    times = _least_seconds(programs, _PARALLEL_RUNS)
    small, small_all, large, large_all = (each / _PARALLEL_KERNELS for each in times)
    return joining(threads, (small, large), (small_all, large_all))


def joining(
    threads: int, alone: tuple[float, float], together: tuple[float, float]
) -> tuple[float, float]:
    """Return `join_seconds` and `thread_efficiency` from the times of a small and of a large
    kernel.
    """
    slope = (together[1] - together[0]) / (alone[1] - alone[0])
    speedup = min(max(1 / slope if slope > 0 else float(threads), 1.01), float(threads))
    join = max(together[0] - alone[0] / speedup, 0.0)
    return join, (speedup - 1) / (threads - 1)


def _least_seconds(programs: Sequence[Program], runs: int) -> list[float]:
    """Return the least time of a run of each, in turns, so that all meet the same machine."""
    least = [float("inf")] * len(programs)
    for _ in range(runs):
        for number, program in enumerate(programs):
            least[number] = min(least[number], _seconds(program))
    return least


def _seconds(program: Program) -> float:
    start = time.perf_counter()
    program.run()
    return time.perf_counter() - start
