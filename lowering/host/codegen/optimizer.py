"""LLVM's targets and its optimizations, by llvmlite."""

from functools import cache
from typing import Any

from braid.support.errors import BraidError
from braid.support.llvm_bindings import llvm
from braid.targets.machines.machine import Machine

OPTIMIZATION_LEVEL = 3


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def target_machine(machine: Machine, **options: str) -> Any:
    """Return LLVM's code generator for a machine; `options` are those of llvmlite."""
    _initialize()
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=OPTIMIZATION_LEVEL, **options
    )


def verified_module(llvm_ir: str, target: Any) -> Any:
    """Return LLVM's module of a text, for `target`. Raises BraidError if LLVM rejects it."""
    try:
        module = llvm.parse_assembly(llvm_ir)
        module.triple = target.triple
        module.data_layout = str(target.target_data)
        module.verify()
    except RuntimeError as error:
        raise BraidError(f"LLVM rejects the generated code: {error}") from error
    return module


def optimize_module(module: Any, target: Any, **settings: bool) -> None:
    """Optimize a module in place; `settings` are those of the pipeline, such as
    `loop_unrolling`.
    """
    tuning = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION_LEVEL)
    for name, value in settings.items():
        setattr(tuning, name, value)
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
