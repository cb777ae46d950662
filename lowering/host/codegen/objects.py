"""LLVM IR text to optimized IR, assembly and object code, by llvmlite."""

from typing import Any

from braid.lowering.common.function_attributes import UNROLLED
from braid.lowering.host.codegen.half_floats import with_conversions
from braid.lowering.host.codegen.llvm_text import (
    bfloat_as_integers,
    only_moves_vectors,
    translate_literals,
)
from braid.lowering.host.codegen.optimizer import (
    OPTIMIZATION_LEVEL,
    optimize_module,
    target_machine,
    verified_module,
)
from braid.targets.machines.machine import Machine

_PLACEMENT = {"reloc": "pic", "codemodel": "small"}
OPTIONS = {"opt": OPTIMIZATION_LEVEL, **_PLACEMENT}
"""Of LLVM's code generator. Position-independent: an object serves in process and in a library."""

VERSION = 4
"""The version of the code that compiles a module's text, besides `OPTIONS`: to be raised when that
changes objects."""


def _target_machine(machine: Machine) -> Any:
    return target_machine(machine, **_PLACEMENT)


def _optimized(llvm_ir: str, target: Any) -> Any:
    text = bfloat_as_integers(translate_literals(llvm_ir))
    module = verified_module(with_conversions(text), target)
    # Of loops alone: no kernel computes the same of neighbours elsewhere, and in a host program to
    # look for it takes as long as all other passes. Copies wait for memory, however long their code
    # is; it can be thousands of stores.
    unrolls = not (f'"{UNROLLED}"' in text or only_moves_vectors(text))
    optimize_module(module, target, loop_vectorization=True, loop_unrolling=unrolls)
    return module


def optimize(llvm_ir: str, machine: Machine) -> str:
    """Return the LLVM IR after LLVM's own optimizations. Raises BraidError if LLVM rejects it."""
    return str(_optimized(llvm_ir, _target_machine(machine)))


def emit_assembly(llvm_ir: str, machine: Machine) -> str:
    """Return the assembly of a module. Raises BraidError if LLVM rejects it."""
    target = _target_machine(machine)
    return str(target.emit_assembly(_optimized(llvm_ir, target)))


def emit_object(llvm_ir: str, machine: Machine) -> bytes:
    """Return the object file of a module. Raises BraidError if LLVM rejects it.

    An instruction that LLVM cannot select ends the process: see `workers`.
    """
    target = _target_machine(machine)
    return bytes(target.emit_object(_optimized(llvm_ir, target)))
