"""A whole model at the stages of its lowering, for `--emit`."""

from collections.abc import Sequence
from enum import StrEnum

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.lowering.common.upstream import to_llvm_ir
from braid.lowering.cpu.pipeline import emit_kernels, lower_to_cpu
from braid.lowering.host.codegen.kernel_stages import EmitStage, emit
from braid.lowering.host.codegen.kernel_text import module_text
from braid.lowering.host.codegen.link import link_relocatable
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.llvm_text import translate_literals
from braid.lowering.host.codegen.objects import emit_assembly, optimize
from braid.lowering.host.codegen.target_machine import host_machine
from braid.lowering.host.descriptor import descriptor_module
from braid.lowering.host.variants import describe, emit_programs
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.storage.plan_memory import PlanMemoryPass
from braid.support.llvm_bindings import llvm
from braid.targets.kernels.kernel_family import KernelFamily


class Stage(StrEnum):
    """Where to stop."""

    MLIR = "mlir"
    """The graph after all passes: kernels outlined, memory planned."""

    LINALG = "linalg"
    """Kernels and program in upstream dialects, one module each."""

    LLVM = "llvm"
    """LLVM IR of the whole model, optimized."""

    ASM = "asm"
    OBJ = "obj"
    """One relocatable object that defines `braid_model`."""


def emit_stage(
    ctx: Context,
    module: ModuleOp,
    families: Sequence[KernelFamily],
    stage: Stage,
    *,
    jobs: int | None = None,
    profile: bool = False,
) -> str | bytes:
    """The model at `stage` for the host: bytes for an object, text for all others.

    `module` is what `outline-kernels` leaves; memory is planned in it. Raises BraidError where a
    kernel cannot be compiled, or where there is no C compiler to join the objects.
    """
    match stage:
        case Stage.OBJ:
            code = lower_to_cpu(ctx, module, families, jobs=jobs, profile=profile)
            return link_relocatable(code.objects)
        case Stage.MLIR:
            emit_kernels(module, families)
            run_pipeline(ctx, module, [PlanMemoryPass()])
            return str(module) + "\n"
        case Stage.LINALG:
            return "// -----\n".join(_upstream_texts(ctx, module, families, profile))
        case Stage.LLVM:
            return optimize(_llvm_ir(ctx, module, families, profile), host_machine())
        case Stage.ASM:
            return emit_assembly(_llvm_ir(ctx, module, families, profile), host_machine())


def _upstream_texts(
    ctx: Context, module: ModuleOp, families: Sequence[KernelFamily], profile: bool
) -> list[str]:
    kernels = [str(emit(k, EmitStage.LINALG)) for k in emit_kernels(module, families)]
    run_pipeline(ctx, module, [PlanMemoryPass()])
    programs = emit_programs(module, profile=profile)
    return [*kernels, *(str(program) + "\n" for program in programs.modules)]


def _llvm_ir(
    ctx: Context, module: ModuleOp, families: Sequence[KernelFamily], profile: bool
) -> str:
    """Kernels, programs and descriptor in one LLVM module."""
    kernels = emit_kernels(module, families)
    run_pipeline(ctx, module, [PlanMemoryPass()])
    programs = emit_programs(module, profile=profile)
    texts = [to_llvm_ir(module_text(kernel.module), LLVM_PASSES) for kernel in kernels]
    texts += [to_llvm_ir(str(program), LLVM_PASSES) for program in programs.modules]
    description = describe(module, host_machine().enabled_features, programs.counters)
    whole = llvm.parse_assembly(descriptor_module(description))
    for text in texts:
        whole.link_in(llvm.parse_assembly(translate_literals(text)))
    return str(whole)
