"""From a module after `outline-kernels` to object code: kernels, memory plan, program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute

from braid.analysis.kernel_family import Kernel, KernelFamily
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.ports import input_names, output_names
from braid.errors import BraidError
from braid.lowering.cpu.compiler import available_cpus, compile_text
from braid.lowering.cpu.kernel_building import BuiltKernel, build_kernels
from braid.lowering.cpu.object_cache import default_cache
from braid.lowering.cpu.objects import emit_object
from braid.lowering.cpu.program.descriptor import ModelDescription, Port, descriptor_module
from braid.lowering.cpu.program.emit import GRID, emit_program
from braid.lowering.cpu.selection import emit_kernel, group_of
from braid.lowering.cpu.target_machine import TargetMachineSpec, host_machine
from braid.passes.manager import run_pipeline
from braid.passes.memory.in_place import IN_PLACE, in_place_attribute
from braid.passes.memory.placement import ALIGNMENT
from braid.passes.memory.plan_memory import (
    ARENA_BYTES,
    SCRATCH_BYTES,
    WEIGHTS_BYTES,
    PlanMemoryPass,
)


@dataclass(frozen=True)
class CpuCode:
    """Objects that together define `braid_model`, and what the descriptor says.

    `weights_bytes` is the size of the weights section; which weight stands where is written on
    the parameters and constants of the module (`braid.buffers`).
    """

    objects: tuple[bytes, ...]
    description: ModelDescription
    weights_bytes: int


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

    `module` is what `outline-kernels` leaves. Kernels come from the first family that takes
    their group, else from the fallback. Raises BraidError where a kernel cannot be compiled.
    """
    machine = machine or host_machine()
    function = main_function(module)
    kernels = build_kernels(
        kernel_functions(module),
        families,
        machine=machine,
        jobs=jobs or available_cpus(),
        cache=default_cache(),
    )
    annotate_kernels(module, kernels)
    run_pipeline(ctx, module, [PlanMemoryPass()], verify=False)
    program, counters = emit_program(module, function, profile=profile)
    description = describe(function, machine, counters)
    return CpuCode(
        (
            *(kernel.object_code for kernel in kernels),
            compile_text(str(program), machine),
            emit_object(descriptor_module(description), machine),
        ),
        description,
        _integer(function, WEIGHTS_BYTES),
    )


def main_function(module: ModuleOp) -> func.FuncOp:
    """The function that is the model: the only public one.

    Raises BraidError if there is none or more than one.
    """
    public = [op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_visibility is None]
    if len(public) != 1:
        names = ", ".join(op.sym_name.data for op in public) or "none"
        raise BraidError(
            f"a model is a module with one public function, this one has {names}",
            hint="make the other functions private",
        )
    return public[0]


def kernel_functions(module: ModuleOp) -> list[func.FuncOp]:
    """The functions of the kernels that the model calls."""
    called = {
        op.callee.root_reference.data
        for op in main_function(module).walk()
        if isinstance(op, func.CallOp)
    }
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data in called]


def emit_kernels(module: ModuleOp, families: Sequence[KernelFamily]) -> list[Kernel]:
    """The kernels that the model calls, before they are compiled."""
    return [
        emit_kernel(function.sym_name.data, group_of(function), families)
        for function in kernel_functions(module)
    ]


def annotate_kernels(module: ModuleOp, kernels: Sequence[BuiltKernel | Kernel]) -> None:
    """Writes grid, scratch and aliasing of the kernels on their functions."""
    for function, kernel in zip(kernel_functions(module), kernels, strict=True):
        function.attributes[GRID] = IntegerAttr(kernel.grid, i64)
        function.attributes[SCRATCH_BYTES] = IntegerAttr(kernel.scratch_bytes, i64)
        function.attributes[IN_PLACE] = in_place_attribute(kernel.in_place)


def describe(
    function: func.FuncOp, machine: TargetMachineSpec, counters: tuple[str, ...]
) -> ModelDescription:
    """The description of a planned function."""
    signature = function.function_type
    return ModelDescription(
        _ports(input_names(function), signature.inputs.data),
        _ports(output_names(function), signature.outputs.data),
        _integer(function, ARENA_BYTES),
        ALIGNMENT,
        machine.enabled_features,
        counters,
    )


def _ports(names: Sequence[str], types: Sequence[Attribute]) -> tuple[Port, ...]:
    ports: list[Port] = []
    for name, type in zip(names, types, strict=True):
        tensor = cast(AnyTensor, type)
        shape = tensor.get_shape()
        ports.append(Port(name, tensor.element_type, shape, shape))
    return tuple(ports)


def _integer(function: func.FuncOp, name: str) -> int:
    attribute = function.attributes[name]
    assert isinstance(attribute, IntegerAttr)
    return int(attribute.value.data)
