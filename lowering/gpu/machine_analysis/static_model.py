"""Predict how long a kernel takes: by its launches, its work and its machine code.

The time of a launch is the maximum of the times for its multiplications, its copies to shared
memory, and its global memory traffic. Blocks are dealt out evenly: the multiprocessor with the most
of them ends last. The model ranks schedules of one kernel; it does not include caches.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from braid.lowering.gpu.launch.gpu_kernel import BlockWork
from braid.lowering.gpu.launch.launches import Launch, Launches
from braid.lowering.gpu.machine_analysis.main_loop import CodeFacts, MainLoop
from braid.lowering.gpu.machine_analysis.occupancy import blocks_at_once, multiprocessor
from braid.targets.machines.machine import Machine

SCHEDULERS = 4
"""The schedulers of a multiprocessor; each issues an instruction a cycle."""
SHARED_BYTES = 128
"""The bytes that a multiprocessor moves from and to shared memory in a cycle."""
COPY_SECONDS = 0.6e-6
"""Assumed: from the start of a copy from global memory until it is there."""
ENTRY_SECONDS = 2e-6
"""Assumed: an entry in a graph begins when the one before has ended."""
REGISTERS = 255
"""The registers of a thread whose entry the assembler has not reported: the maximum."""


@dataclass(frozen=True)
class EntryCode:
    """The facts of an entry: its registers from the assembler, its code if it was read."""

    registers: int
    facts: CodeFacts | None = None


def loop_share(loop: MainLoop, architecture: str, rate: float = 1.0) -> float:
    """Return at most which share of the peak a main loop reaches, whose rate is `rate` times that
    of bf16.

    The limits per scheduler: an instruction a cycle, its share of the peak, and its share of the
    shared-memory bandwidth.
    """
    work = loop.flops / (multiprocessor(architecture).flops * rate / SCHEDULERS)
    shared = loop.shared_bytes / (SHARED_BYTES / SCHEDULERS)
    return work / max(work, loop.instructions, shared)


def predicted_seconds(
    launches: Launches,
    work: tuple[BlockWork, ...],
    code: Mapping[str, EntryCode],
    machine: Machine,
) -> float | None:
    """Return the predicted seconds of one run; None where no block of an entry fits a
    multiprocessor.

    If the `code` of an entry was not read, the fraction of the peak is the assumed one.
    """
    total = 0.0
    for number, launch in enumerate(launches.launches):
        own = work[number] if number < len(work) else None
        seconds = _launch_seconds(launch, launches, own, code.get(launch.entry), machine)
        if seconds is None:
            return None
        total += seconds + (ENTRY_SECONDS if number else 0.0)
    return total


def least_seconds(launches: Launches, work: tuple[BlockWork, ...], machine: Machine) -> float:
    """Return a lower bound of `predicted_seconds`, whatever the code of the entries will be."""
    code = {launch.entry: EntryCode(0) for launch in launches.launches}
    best = tuple(replace(own, share=1.0) for own in work)
    return predicted_seconds(launches, best, code, machine) or 0.0


def _launch_seconds(
    launch: Launch,
    launches: Launches,
    work: BlockWork | None,
    code: EntryCode | None,
    machine: Machine,
) -> float | None:
    moved = sum(launches.buffer_bytes[number] for number in {*launch.arguments, *_mapped(launch)})
    memory = moved / machine.fact("memory_bandwidth", 2e12)
    registers = REGISTERS if code is None else code.registers
    at_once = blocks_at_once(machine.cpu, launch.threads, registers, launch.shared_bytes)
    if code is not None and at_once == 0:
        return None
    if work is None:
        return memory
    processors = machine.fact("multiprocessors", 108)
    rounds = -(-launch.blocks // int(processors))
    multiplied = rounds * work.flops * processors / (work.rate * _share(work, code, machine))
    under_way = max(1, min(at_once, rounds)) * work.in_flight
    copied = rounds * work.copied / (under_way / COPY_SECONDS) if under_way else 0.0
    return max(multiplied, copied, memory)


def _share(work: BlockWork, code: EntryCode | None, machine: Machine) -> float:
    loop = None if code is None or code.facts is None else code.facts.loop
    if loop is None or not loop.flops:
        return work.share
    peak = machine.fact("tensor_bf16_flops", 312e12)
    return loop_share(loop, machine.cpu, work.rate / peak)


def _mapped(launch: Launch) -> tuple[int, ...]:
    return tuple(each.argument for each in launch.tensor_maps)
