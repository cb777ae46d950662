"""The main loop of a kernel: the one in which most multiplications are issued."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from braid.lowering.gpu.machine_analysis.instructions import Instruction, wide_share
from braid.lowering.gpu.machine_analysis.loops import heaviest_path, natural_loops


@dataclass(frozen=True)
class MainLoop:
    """The work that a warp issues in one iteration of a kernel's main loop, if it never waits.

    `flops` and `shared_bytes` are a warp's; `tensor` counts instructions of tensor cores, `names`
    all instructions. `address` is where the loop begins.
    """

    address: int
    instructions: int
    tensor: int
    flops: int
    shared_bytes: int
    names: Counter[str]

    @property
    def tensor_share(self) -> float:
        """Return the fraction of the issued instructions that goes to tensor cores."""
        return self.tensor / self.instructions

    @property
    def flops_per_instruction(self) -> float:
        """Multiplications and additions of a warp for each instruction that it issues."""
        return self.flops / self.instructions

    @property
    def shared_bytes_per_flop(self) -> float:
        """Bytes from and to shared memory for each of them."""
        return self.shared_bytes / self.flops if self.flops else 0.0

    @property
    def tensor_name(self) -> str:
        """The instruction of tensor cores that is issued most; empty without one."""
        known = [(n, name) for name, n in self.names.items() if "MMA" in name]
        return max(known)[1] if known else ""


@dataclass(frozen=True)
class CodeFacts:
    """The facts of a kernel's code: its length, its spills, its main loop if there is one."""

    instructions: int
    spills: int
    wide_share: float | None
    loop: MainLoop | None


def code_facts(code: Sequence[Instruction]) -> CodeFacts:
    """Return the facts of the machine code of one function."""
    return CodeFacts(
        len(code), sum(one.spills for one in code), wide_share(code), find_main_loop(code)
    )


def find_main_loop(code: Sequence[Instruction]) -> MainLoop | None:
    """Return the innermost loop with the most FLOPs on tensor cores, else with the most other
    FLOPs.
    """
    blocks, successors = _blocks(code)
    parts = [code[begin:end] for begin, end in blocks]
    flops = [sum(one.flops for one in part) for part in parts]
    tensor = [sum(one.flops for one in part if one.is_tensor) for part in parts]
    loops = natural_loops(successors)
    busy = {header: body for header, body in loops.items() if sum(flops[n] for n in body)}
    inner = {
        header: body
        for header, body in busy.items()
        if not any(other < body for other in busy.values())
    }
    if not inner:
        return None

    def weight(header: int) -> tuple[int, int]:
        return sum(tensor[n] for n in inner[header]), sum(flops[n] for n in inner[header])

    header = max(inner, key=weight)
    weights = [(amount, -len(part)) for amount, part in zip(flops, parts, strict=True)]
    path = heaviest_path(successors, inner[header], header, weights)
    issued = [one for node in path for one in parts[node]]
    return MainLoop(
        code[blocks[header][0]].address,
        len(issued),
        sum(one.is_tensor for one in issued),
        sum(one.flops for one in issued),
        sum(one.shared_bytes for one in issued),
        Counter(one.name for one in issued),
    )


def _blocks(code: Sequence[Instruction]) -> tuple[list[tuple[int, int]], list[list[int]]]:
    """Return where each basic block begins and ends, and which may follow it."""
    places = {one.address: place for place, one in enumerate(code)}
    targets = [places.get(one.target) if one.target is not None else None for one in code]
    begins = {0, *(target for target in targets if target is not None)}
    begins |= {place + 1 for place, one in enumerate(code) if one.ends}
    ordered = sorted(place for place in begins if place < len(code))
    blocks = list(zip(ordered, [*ordered[1:], len(code)], strict=True))
    numbers = {begin: number for number, (begin, _) in enumerate(blocks)}
    successors: list[list[int]] = []
    for number, (_, end) in enumerate(blocks):
        target, last = targets[end - 1], code[end - 1]
        following = {numbers[target]} if target is not None else set[int]()
        if last.goes_on and number + 1 < len(blocks):
            following.add(number + 1)
        successors.append(sorted(following))
    return blocks, successors
