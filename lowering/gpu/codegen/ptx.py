"""From a kernel's module in the `gpu` dialect to optimized LLVM IR and PTX."""

import re
from typing import Any

from braid.lowering.common.upstream import require_translatable, run_upstream_passes
from braid.lowering.gpu.codegen.device_math import definitions
from braid.lowering.gpu.codegen.nvvm_passes import NVVM_PASSES
from braid.lowering.gpu.launch.entries import LOOP_ANNOTATION, TENSOR_MAP_ALIGNMENT
from braid.lowering.gpu.launch.launches import MAP_BYTES
from braid.lowering.host.codegen.llvm_text import translate_literals
from braid.lowering.host.codegen.optimizer import (
    optimize_module,
    target_machine,
    verified_module,
)
from braid.support.errors import BraidError
from braid.support.llvm_bindings import llvm
from braid.support.mlir_bindings import ir
from braid.support.mlir_bindings import llvm as mlir_llvm
from braid.targets.machines.machine import Machine

_MATH_CALL = re.compile(r"^declare [^@]*@(__nv_\w+)\(.*$", re.MULTILINE)
_DECLARED = re.compile(r"^declare [^@]*@([\w.]+)\(", re.MULTILINE)
_TENSOR_MAP = re.compile(rf"ptr align {TENSOR_MAP_ALIGNMENT} (?=%)")


def nvvm_text(text: str) -> str:
    """Return the module in the `nvvm` dialect. Raises BraidError where upstream MLIR rejects it."""
    return run_upstream_passes(text, NVVM_PASSES)


def device_ir(text: str) -> str:
    """Return LLVM IR of the `gpu.module` in `text`, in the `nvvm` dialect, with what it calls.

    Raises BraidError where a function is left that is not code for the device, and
    UnsupportedError for an elementary function that there is no code for.
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        plain = ir.Module.create()
        for inner in _device_ops(module):
            plain.body.append(inner.operation.clone())
        require_translatable(plain.operation)
        plain.operation.walk(_annotate_loop)
        found = str(mlir_llvm.translate_module_to_llvmir(plain.operation))
    found = "\n".join(_convergent(_with_tensor_maps(line)) for line in found.splitlines())
    names = _MATH_CALL.findall(found)
    return translate_literals(_MATH_CALL.sub("", found)) + "\n" + _added(definitions(names), found)


def _with_tensor_maps(line: str) -> str:
    """Make entries take tensor maps by value, which upstream's lowering of `gpu.func` forgets."""
    if not line.startswith("define ptx_kernel "):
        return line
    kept = f"ptr byval([{MAP_BYTES} x i8]) align {TENSOR_MAP_ALIGNMENT}"
    return _TENSOR_MAP.sub(f'{kept} "nvvm.grid_constant" ', line)


def _convergent(line: str) -> str:
    """Mark assembly that a whole warp executes, or that waits, as convergent: LLVM must not move
    it.

    Calls of intrinsics have the attribute already; upstream's `llvm.inline_asm` has none.
    """
    if " asm sideeffect " not in line:
        return line
    head, bracket, rest = line.rpartition(")")
    return f"{head}{bracket} convergent{rest}"


def _added(text: str, module: str) -> str:
    """Return the functions without declarations that the module has already."""
    known = set(_DECLARED.findall(module))
    kept = (line for line in text.splitlines() if not known & set(_DECLARED.findall(line)))
    return "\n".join(kept) + "\n"


def _annotate_loop(op: Any) -> Any:
    """Keep a loop's metadata with its branch, but under a name that is not translated."""
    if LOOP_ANNOTATION in op.attributes:
        op.attributes[LOOP_ANNOTATION.removeprefix("llvm.")] = op.attributes[LOOP_ANNOTATION]
    return ir.WalkResult.ADVANCE


def _device_ops(module: Any) -> list[Any]:
    for op in module.body.operations:
        if op.operation.name == "gpu.module":
            return list(op.operation.regions[0].blocks[0].operations)
    raise BraidError("the kernel has no code for the device")


def optimized_ir(llvm_ir: str, machine: Machine) -> str:
    """Return the LLVM IR that becomes PTX. Raises BraidError if LLVM rejects it."""
    target = target_machine(machine)
    module = verified_module(llvm_ir, target)
    settings = {"loop_vectorization": False, "slp_vectorization": True, "loop_unrolling": True}
    optimize_module(module, target, **settings)
    return str(module)


def ptx_of(optimized: str, machine: Machine) -> str:
    """Return the PTX of optimized LLVM IR; what LLVM cannot select ends the process: see `worker`.

    The PTX version is the machine's, or a later one that an instruction needs and LLVM does not
    know.
    """
    text = str(target_machine(machine).emit_assembly(llvm.parse_assembly(optimized)))
    later = [version for form, version in _LATER_FORMS.items() if form.search(text) is not None]
    return _VERSION.sub(lambda own: _version_line(_numbers(own), *later), text, count=1)


_VERSION = re.compile(r"^\.version (\d+)\.(\d+)$", re.MULTILINE)
_LATER_FORMS = {re.compile(r"\bwgmma\.mma_async\.\S+\.(?:u8\.s8|s8\.u8) "): (8, 4)}
"""Forms of instructions that PTX has only since a version later than that of the architecture.

("PTX ISA", `wgmma.mma_async`: products of mixed signs.)
"""


def _numbers(version: re.Match[str]) -> tuple[int, int]:
    return int(version[1]), int(version[2])


def _version_line(*versions: tuple[int, int]) -> str:
    major, minor = max(versions)
    return f".version {major}.{minor}"
