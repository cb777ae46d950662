"""A kernel at the stages of its lowering, for `--emit`."""

from enum import StrEnum

from braid.lowering.common.generic_text import module_text
from braid.lowering.common.upstream import run_upstream_passes, to_llvm_ir
from braid.lowering.host.codegen.compiler import compile_kernel
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.objects import emit_assembly, optimize
from braid.lowering.host.codegen.target_machine import host_machine
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.machine import Machine


class EmitStage(StrEnum):
    """The stage at which emission stops."""

    LINALG = "linalg"
    """As the family emits it: linalg, vector, scf, memref."""

    LLVM = "llvm"
    """LLVM IR after LLVM's optimizations."""

    ASM = "asm"
    OBJ = "obj"


def emit(kernel: Kernel, stage: EmitStage | str, machine: Machine | None = None) -> str | bytes:
    """Return the kernel at `stage`: text, or bytes for an object.

    `machine` is the host by default. Raises BraidError if upstream MLIR or LLVM rejects the kernel,
    ValueError for an unknown stage.
    """
    machine = machine or host_machine()
    match EmitStage(stage):
        case EmitStage.LINALG:
            return run_upstream_passes(module_text(kernel.module), ())
        case EmitStage.LLVM:
            return optimize(to_llvm_ir(module_text(kernel.module), LLVM_PASSES), machine)
        case EmitStage.ASM:
            return emit_assembly(to_llvm_ir(module_text(kernel.module), LLVM_PASSES), machine)
        case EmitStage.OBJ:
            return compile_kernel(kernel, machine)
