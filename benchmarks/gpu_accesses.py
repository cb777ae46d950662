"""Accesses to memory in machine code of GPU kernels that memory limits, without a GPU.

``python -m benchmarks.gpu_accesses [--target gpu-a100] [--json out.json]`` compiles the cases of
``benchmarks.gpu`` that move bytes, at their full size, assembles them by ptxas, and counts, by
nvdisasm's text, a thread's accesses of 16 bytes and of fewer, in the entries for buffers that begin
at multiples of 16 bytes. Next to these is the resource that limits the blocks of a multiprocessor.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import braid
from benchmarks.command import run_command
from benchmarks.gpu_case import Case
from benchmarks.gpu_cases import cases
from benchmarks.gpu_run import source_of
from braid.lowering.gpu.codegen.machine_code import MachineCode, assemble, disassemble
from braid.lowering.gpu.machine_analysis.instructions import Instruction, parse_instructions
from braid.lowering.gpu.machine_analysis.occupancy import occupancy
from braid.runtime.artifact import read_artifact

WIDE = 16


@dataclass(frozen=True)
class Row:
    """One entry of a case: a thread's accesses, `narrow` by their bytes, and its resources."""

    case: str
    entry: str
    architecture: str
    wide: int
    narrow: tuple[int, ...]
    registers: int
    spilled_bytes: int
    shared_bytes: int
    threads: int
    occupancy: float

    @property
    def wide_share(self) -> float:
        """The fraction of a thread's bytes that is moved by accesses of 16 bytes."""
        return self.wide * WIDE / max(self.wide * WIDE + sum(self.narrow), 1)


def rows(case: Case, target: str) -> Iterator[Row]:
    """Yield the accesses of all entries of a case that its launches start for aligned buffers."""
    with tempfile.TemporaryDirectory(prefix="braid-accesses-") as name:
        path = Path(name) / "model.braid"
        braid.compile(source_of(case), target=target, load=False).save(path)
        artifact = read_artifact(path)
    codes = {
        own.kind: bytes(code)
        for own, code in zip(artifact.manifest.devices, artifact.device_code, strict=True)
    }
    kind = next(kind for kind in codes if kind.startswith("ptx-"))
    architecture = kind.removeprefix("ptx-")
    code = assemble(codes[kind], architecture)
    functions = parse_instructions(disassemble(code.code))
    for kernel in json.loads(codes[f"gpu-launches-{architecture}"]):
        for launch in kernel["launches"]:
            entry, taken = launch["entry"], (launch["threads"], launch["shared_bytes"])
            yield _row(case.name, entry, architecture, code, functions[entry], *taken)


def _row(
    case: str,
    entry: str,
    architecture: str,
    code: MachineCode,
    instructions: list[Instruction],
    threads: int,
    shared: int,
) -> Row:
    sizes = [one.global_bytes for one in instructions if one.global_bytes]
    used = code.resources[entry]
    return Row(
        case,
        entry,
        architecture,
        sizes.count(WIDE),
        tuple(size for size in sizes if size != WIDE),
        used.registers,
        used.spilled_bytes,
        shared,
        threads,
        occupancy(architecture, threads, used.registers, shared),
    )


def main(*, target: str = "gpu-a100") -> object:
    """Run as a program."""
    print("| case | 16 bytes | fewer | of bytes | registers | spilled | threads | occupancy |")
    print("|---|---|---|---|---|---|---|---|")
    found: list[Row] = []
    for case in (one for one in cases(small=False) if one.moved):
        for row in rows(case, target):
            narrow = " ".join(map(str, row.narrow)) or "none"
            print(
                f"| {row.case} | {row.wide} | {narrow} | {row.wide_share:.2f} | {row.registers} "
                f"| {row.spilled_bytes} | {row.threads} | {row.occupancy:.2f} |",
                flush=True,
            )
            found.append(row)
    return [{**asdict(row), "wide_share": row.wide_share} for row in found]


if __name__ == "__main__":
    run_command(main)
