"""From a module after `outline-kernels` to object code: kernels, memory plan, program."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i64

from braid.analysis.storage.strided_storage import set_overlap
from braid.dialects.braid.attribute_names import (
    BARRIERS,
    GRID,
    IN_PLACE,
    SCRATCH_BYTES,
    WORKERS,
)
from braid.dialects.braid.in_place import in_place_attribute
from braid.lowering.cpu.kernel_building import BuiltKernel, build_kernels
from braid.lowering.cpu.selection import emit_kernel, group_of
from braid.lowering.host.codegen.compiler import available_cpus, compile_text
from braid.lowering.host.codegen.objects import emit_object
from braid.lowering.host.codegen.target_machine import TargetMachineSpec, host_machine
from braid.lowering.host.descriptor import ModelDescription, descriptor_module
from braid.lowering.host.variants import describe, emit_programs, model_functions
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.storage.plan_memory import PlanMemoryPass
from braid.support.object_cache import default_cache
from braid.targets.kernels.kernel_family import Kernel, KernelFamily


@dataclass(frozen=True)
class CpuCode:
    """Objects that together define `braid_model`, and what the descriptor says.

    Which weight stands where is written on the parameters and constants of the module
    (`braid.buffers`).
    """

    objects: tuple[bytes, ...]
    description: ModelDescription


def lower_to_cpu(
    ctx: Context,
    module: ModuleOp,
    families: Sequence[KernelFamily],
    *,
    machine: TargetMachineSpec | None = None,
    jobs: int | None = None,
    profile: bool = False,
) -> CpuCode:
    """Emits and compiles all kernels, plans memory (in place, as attributes), compiles the program.

    `module` is what `outline-kernels` leaves. Kernels come from the cheapest family that takes
    their group, else from the fallback. Raises BraidError where a kernel cannot be compiled.
    """
    machine = machine or host_machine()
    kernels = build_kernels(
        kernel_functions(module),
        families,
        machine=machine,
        jobs=jobs or available_cpus(),
        cache=default_cache(),
    )
    annotate_kernels(module, kernels)
    run_pipeline(ctx, module, [PlanMemoryPass()], verify=False)
    programs = emit_programs(module, profile=profile)
    description = describe(module, machine.enabled_features, programs.counters)
    return CpuCode(
        (
            *(kernel.object_code for kernel in kernels),
            *(compile_text(str(program), machine) for program in programs.modules),
            emit_object(descriptor_module(description), machine),
        ),
        description,
    )


def kernel_functions(module: ModuleOp) -> list[func.FuncOp]:
    """The functions of the kernels that the model calls."""
    called = {
        op.callee.root_reference.data
        for function in model_functions(module)
        for op in function.walk()
        if isinstance(op, func.CallOp)
    }
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data in called]


def emit_kernels(module: ModuleOp, families: Sequence[KernelFamily]) -> list[Kernel]:
    """The kernels that the model calls, before they are compiled; their needs are annotated."""
    kernels = [
        emit_kernel(function.sym_name.data, group_of(function), families)
        for function in kernel_functions(module)
    ]
    annotate_kernels(module, kernels)
    return kernels


def workers_of(kernel: BuiltKernel | Kernel) -> int:
    """How many parts of the kernel's grid run at once on memory of their own: one a CPU."""
    own = kernel.scratch_bytes > 0 and not kernel.barriers
    return min(kernel.grid, available_cpus()) if own else 1


def annotate_kernels(module: ModuleOp, kernels: Sequence[BuiltKernel | Kernel]) -> None:
    """Writes grid, scratch and aliasing of the kernels on their functions."""
    for function, kernel in zip(kernel_functions(module), kernels, strict=True):
        function.attributes[GRID] = IntegerAttr(kernel.grid, i64)
        workers = workers_of(kernel)
        if workers > 1:
            function.attributes[WORKERS] = IntegerAttr(workers, i64)
        function.attributes[SCRATCH_BYTES] = IntegerAttr(kernel.scratch_bytes * workers, i64)
        function.attributes[IN_PLACE] = in_place_attribute(kernel.in_place)
        set_overlap(function, kernel.overlap)
        if kernel.barriers:
            function.attributes[BARRIERS] = DenseArrayBase.from_list(i64, kernel.barriers)
