"""The kernels of a tile's members, and a plan of the scratch memory that they share."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from braid.dialects.braid.attribute_names import ARENA_BYTES
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.fallback.emit_kernel import emit_chosen
from braid.lowering.host.kernel_needs import annotate_kernels, kernel_functions
from braid.lowering.host.variants import model_functions
from braid.passes.fusion.apply_fusion import ApplyFusionPass
from braid.passes.fusion.select_fusion import SelectFusionPass
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.apply_layouts import ApplyLayoutsPass
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.passes.outlining.outline_kernels import OutlineKernelsPass, outlined_group
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.plan_memory import PlanMemoryPass
from braid.support.sizes.expression import known
from braid.targets.backend import needs_of
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class Members:
    """A planned tile: the calls in `function`, the kernels by symbol, the bytes of the arena.

    `globals` are the constants that the kernels read, `features` those of a CPU that they ask for.
    """

    function: func.FuncOp
    kernels: dict[str, func.FuncOp]
    grids: dict[str, int]
    globals: tuple[Operation, ...]
    arena_bytes: int
    features: frozenset[str]


def compile_members(
    module: ModuleOp, families: Sequence[KernelFamily], machine: Machine, prefix: str
) -> Members:
    """Group, lay out, emit and plan the ops of `@tile`, like a model of its own.

    Symbols begin with `prefix`. Raises UnsupportedError for ops that have no code.
    """
    context = Context()
    fuse = [SelectFusionPass(tiles=False), ApplyFusionPass()]
    run_pipeline(context, module, fuse, verify=False)
    costs = CostSource.single(DeviceCosts.of_families(families, machine))
    SelectLayoutsPass().decide(module, LayoutCosts(module, costs, "seconds"))
    run_pipeline(context, module, [ApplyLayoutsPass(), OutlineKernelsPass()], verify=False)
    callees = kernel_functions(module)
    names = [function.sym_name.data for function in callees]
    selection = KernelChoice(families)
    kernels = [
        emit_chosen(name, outlined_group(function), selection)
        for name, function in zip(names, callees, strict=True)
    ]
    annotate_kernels(callees, [needs_of(kernel) for kernel in kernels])
    PlanMemoryPass().plan(module, MemorySpaces())
    (function,) = model_functions(module)
    arena = function.attributes[ARENA_BYTES]
    assert isinstance(arena, IntegerAttr)
    functions: dict[str, func.FuncOp] = {}
    constants: list[Operation] = []
    for name, kernel in zip(names, kernels, strict=True):
        for op in list(kernel.module.ops):
            op.detach()
            _rename(op, f"{prefix}{name}_")
            if isinstance(op, func.FuncOp):
                functions[name] = op
            else:
                constants.append(op)
    grids = {name: known(kernel.grid) for name, kernel in zip(names, kernels, strict=True)}
    features = frozenset(name for kernel in kernels for name in kernel.features)
    return Members(function, functions, grids, tuple(constants), arena.value.data, features)


def _rename(op: Operation, prefix: str) -> None:
    """Put `prefix` before the symbols that `op` defines and uses."""
    for inner in op.walk():
        if isinstance(inner, memref.GetGlobalOp):
            inner.name_ = SymbolRefAttr(prefix + inner.name_.root_reference.data)
    if isinstance(op, memref.GlobalOp):
        op.sym_name = StringAttr(prefix + op.sym_name.data)
    if isinstance(op, func.FuncOp):
        op.sym_name = StringAttr(prefix + "code")
        op.sym_visibility = StringAttr("private")
        op.attributes["llvm.linkage"] = llvm.LinkageAttr("internal")
