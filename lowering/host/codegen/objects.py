"""LLVM IR text to optimized IR, assembly and object code, by llvmlite."""

from functools import cache
from typing import Any

from braid.lowering.common.function_attributes import UNROLLED
from braid.lowering.host.codegen.half_floats import with_conversions
from braid.lowering.host.codegen.llvm_text import (
    bfloat_as_integers,
    only_moves_vectors,
    translate_literals,
)
from braid.support.errors import BraidError
from braid.support.llvm_bindings import llvm
from braid.targets.machines.machine import Machine

_OPTIMIZATION_LEVEL = 3

OPTIONS = {"opt": _OPTIMIZATION_LEVEL, "reloc": "pic", "codemodel": "small"}
"""Of LLVM's code generator. Position-independent: an object serves in process and in a library."""

VERSION = 4
"""Of what makes an object of a module's text, besides `OPTIONS`: raised with what changes that."""


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _target_machine(machine: Machine) -> Any:
    _initialize()
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        **OPTIONS,
    )


def _optimized(llvm_ir: str, target: Any) -> Any:
    try:
        text = bfloat_as_integers(translate_literals(llvm_ir))
        module = llvm.parse_assembly(with_conversions(text))
        module.verify()
    except RuntimeError as error:
        raise BraidError(f"LLVM rejects the generated code: {error}") from error
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=_OPTIMIZATION_LEVEL)
    # Of loops alone: no kernel computes the same of neighbours elsewhere, and in a host program to
    # look for it takes as long as all other passes.
    tuning.loop_vectorization = True
    # Copies wait for memory, however long their code is; it can be thousands of stores.
    tuning.loop_unrolling = not (f'"{UNROLLED}"' in text or only_moves_vectors(text))
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


def optimize(llvm_ir: str, machine: Machine) -> str:
    """The LLVM IR after LLVM's own optimizations. Raises BraidError if LLVM rejects it."""
    return str(_optimized(llvm_ir, _target_machine(machine)))


def emit_assembly(llvm_ir: str, machine: Machine) -> str:
    """The assembly of a module. Raises BraidError if LLVM rejects it."""
    target = _target_machine(machine)
    return str(target.emit_assembly(_optimized(llvm_ir, target)))


def emit_object(llvm_ir: str, machine: Machine) -> bytes:
    """The object file of a module. Raises BraidError if LLVM rejects it.

    An instruction that LLVM cannot select ends the process: see `workers`.
    """
    target = _target_machine(machine)
    return bytes(target.emit_object(_optimized(llvm_ir, target)))
