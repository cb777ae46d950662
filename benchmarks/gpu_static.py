"""Machine code of braid's GPU kernels beside CUTLASS's, without a GPU.

``python -m benchmarks.gpu_static [--cutlass DIR] [--json out.json]`` assembles kernels by ptxas and
prints the instructions that a warp issues in an iteration of the main loop, the kernels' resources,
and the least time of the loop by the rates of the target. CUTLASS (BSD-3) is compiled by nvcc with
the same instruction, type and tile: DIR is where ``pip install --target DIR nvidia-cutlass
nvidia-cuda-cccl`` put it; nvcc is that of ``braid-compiler[gpu-check]``. Nothing of NVIDIA's own
libraries is disassembled: their licence forbids it.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import TensorType, bf16, i8, i32
from xdsl.ir import Block

from benchmarks.command import run_command
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.machine_code import assemble, disassemble, find_tool
from braid.lowering.gpu.contraction.tiles import Tiles
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.kernels.hopper.tiles import HopperTiles
from braid.lowering.gpu.kernels.hopper_gemm import HopperGemmFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.gpu.machine_analysis.instructions import parse_instructions
from braid.lowering.gpu.machine_analysis.main_loop import CodeFacts, MainLoop, code_facts
from braid.lowering.gpu.machine_analysis.occupancy import blocks_at_once, occupancy
from braid.lowering.gpu.machine_analysis.static_model import loop_share
from braid.lowering.host.codegen.target_machine import host_machine
from braid.targets.machines.gpus import gpu_machine


@dataclass(frozen=True)
class Case:
    """A tile: what a block computes in a stage of `depth` depths."""

    name: str
    bytes: bool
    rows: int
    columns: int
    depth: int
    stages: int
    warps: int = 64
    hopper: bool = False

    @property
    def architecture(self) -> str:
        """The architecture that the tile is assembled for."""
        return "sm_90a" if self.hopper else "sm_80"

    @property
    def schedule(self) -> dict[str, int]:
        """As the family names it: K is in bytes; for `wgmma` it is always 128."""
        if self.hopper:
            groups = self.rows // 64
            shape = {"rows": self.rows, "columns": self.columns, "groups": groups}
            return {**shape, "stages": self.stages}
        return {
            "rows": self.rows,
            "columns": self.columns,
            "depth": self.depth * (1 if self.bytes else 2),
            "stages": self.stages,
            "warp_rows": self.warps,
            "warp_columns": self.warps,
        }

    @property
    def threads(self) -> int:
        """Threads of a block; for `wgmma` including those that copy."""
        if self.hopper:
            return (self.rows // 64 + 1) * 128
        return self.rows * self.columns // self.warps**2 * 32


CASES = (
    Case("bf16 128×256×64", False, 128, 256, 64, 3),
    Case("bf16 128×128×32", False, 128, 128, 32, 4),
    Case("int8 128×256×64", True, 128, 256, 64, 3),
    Case("bf16 128×256×64, wgmma", False, 128, 256, 64, 3, hopper=True),
)

SOURCES = Path(__file__).parent / "cutlass"


@dataclass(frozen=True)
class Row:
    """One kernel: facts of its code, its resources, and the least time of its main loop."""

    case: str
    maker: str
    architecture: str
    registers: int
    spilled_bytes: int
    shared_bytes: int
    blocks_at_once: int
    occupancy: float
    wide_share: float | None
    loop: dict[str, Any]
    peak_share: float


def group_of(case: Case) -> FusedOp:
    """Return a product of large matrices, the right one transposed, as CUTLASS is compiled."""
    element = i8 if case.bytes else bf16
    right = with_layout(TensorType(element, (4096, 4096)), Layout.parse("ba"))
    block = Block(arg_types=[TensorType(element, (4096, 4096)), right])
    product = MatmulOp.on(*block.args, accumulator=i32 if case.bytes else None)
    block.add_ops([product, YieldOp(product.results[0])])
    outside = Block(arg_types=[argument.type for argument in block.args])
    group = FusedOp(outside.args, [product.results[0].type], block)
    outside.add_op(group)
    return group


def braid_row(case: Case) -> Row:
    """Return the row of the kernel that braid's family makes of the tile."""
    architecture = case.architecture
    machine = gpu_machine(architecture)
    family = HopperGemmFamily(machine) if case.hopper else GemmFamily(machine)
    found = family.match(group_of(case))
    assert found is not None
    tiles = HopperTiles.read if case.hopper else Tiles.read
    kernel = found.emit("product", tiles(case.schedule))
    assert isinstance(kernel, GpuKernel)
    (compiled,) = compile_gpu_kernels([kernel], machine, host_machine(), jobs=1)
    code = assemble(compiled.ptx, architecture)
    (launch,) = kernel.launches.launches
    resources = code.resources[launch.entry]
    facts = code_facts(parse_instructions(disassemble(code.code))[launch.entry])
    taken = resources.registers, resources.spilled_bytes, launch.shared_bytes
    return _row(case, "braid", taken, facts)


def cutlass_row(case: Case, directory: Path) -> Row:
    """Return the row of the kernel that CUTLASS makes of the tile, compiled by nvcc."""
    with tempfile.TemporaryDirectory(prefix="braid-cutlass-") as name:
        source = SOURCES / ("sm90.cu" if case.hopper else "sm80.cu")
        output = Path(name) / "tile.cubin"
        headers = [directory / "cutlass_library/source/include"]
        headers += sorted(directory.glob("nvidia/*/include/cccl"))
        headers += sorted(directory.glob("nvidia/*/include"))
        sizes = ("rows", "columns", "depth", "stages")
        defined = [f"-D{size.upper()}={getattr(case, size)}" for size in sizes]
        command = [find_tool("nvcc"), "-std=c++17", "-O3", f"-arch={case.architecture}", "-cubin"]
        command += ["-DNDEBUG", "--expt-relaxed-constexpr", "--resource-usage"]
        command += [*(f"-I{path}" for path in headers), *defined]
        command += ["-DBYTES"] if case.bytes else []
        log = subprocess.run(
            [*command, str(source), "-o", str(output)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if log.returncode != 0:
            raise SystemExit(f"nvcc cannot compile CUTLASS:\n{log.stdout}")
        return cutlass_facts(case, output.read_bytes(), log.stdout)


def cutlass_facts(case: Case, code: bytes, log: str) -> Row:
    """Resources of a cubin with one kernel, and the assembler's messages about it."""
    words = log.replace(",", " ").split()
    registers = next((int(words[n - 1]) for n, word in enumerate(words) if word == "registers"), 0)
    (instructions,) = parse_instructions(disassemble(code)).values()
    element = 1 if case.bytes else 2
    shared = case.stages * (case.rows + case.columns) * case.depth * element
    return _row(case, "CUTLASS", (registers, 0, shared), code_facts(instructions))


def _row(case: Case, maker: str, taken: tuple[int, int, int], facts: CodeFacts) -> Row:
    registers, spilled, shared = taken
    architecture = case.architecture
    loop = facts.loop
    assert loop is not None, "there is no loop with products"
    return Row(
        case.name,
        maker,
        architecture,
        registers,
        spilled if maker == "braid" else facts.spills,
        shared,
        blocks_at_once(architecture, case.threads, registers, shared),
        occupancy(architecture, case.threads, registers, shared),
        facts.wide_share,
        {
            "instruction": loop.tensor_name,
            "instructions": loop.instructions,
            "tensor": loop.tensor,
            "tensor_share": loop.tensor_share,
            "flops_per_instruction": loop.flops_per_instruction,
            "shared_bytes_per_flop": loop.shared_bytes_per_flop,
        },
        peak_share(loop, architecture, case.bytes),
    )


def peak_share(loop: MainLoop, architecture: str, is_bytes: bool) -> float:
    """At most which part of the tensor cores' peak a loop reaches; see `loop_share`."""
    return loop_share(loop, architecture, 2.0 if is_bytes else 1.0)


def rows(directory: Path | None) -> Iterator[Row]:
    """All kernels, one by one."""
    for case in CASES:
        yield braid_row(case)
        if directory is not None:
            yield cutlass_row(case, directory)


def show(found: list[Row]) -> None:
    """Print a table, with the ratio to CUTLASS if there is one."""
    print("| tile | by | registers | shared | blocks | tensor | of | FLOP/instruction | B/FLOP |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in found:
        loop = row.loop
        print(
            f"| {row.case} | {row.maker} | {row.registers} | {row.shared_bytes} "
            f"| {row.blocks_at_once} | {loop['tensor']} | {loop['instructions']} "
            f"| {loop['flops_per_instruction']:.0f} | {loop['shared_bytes_per_flop']:.4f} |"
        )
    for own in found:
        for other in found:
            if own.case == other.case and (own.maker, other.maker) == ("braid", "CUTLASS"):
                ratio = own.loop["flops_per_instruction"] / other.loop["flops_per_instruction"]
                own_bytes, other_bytes = (one.loop["shared_bytes_per_flop"] for one in (own, other))
                # Tensor cores read operands of `wgmma` without instructions of their own.
                moved = f", {own_bytes / other_bytes:.2f}× its shared bytes" if other_bytes else ""
                print(f"{own.case}: {ratio:.2f}× CUTLASS's FLOPs{moved}")


def main(*, cutlass: Path | None = None) -> object:
    """Run as a program."""
    found = list(rows(cutlass))
    show(found)
    return found


if __name__ == "__main__":
    run_command(main)
