"""Kernels to object code: through the cache, and otherwise through upstream MLIR and LLVM.

A kernel is compiled as text under a neutral name, and gets its own name in the object. So kernels
with equal code have equal text, and share an entry in the object cache.
"""

import hashlib
import os
import re
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from braid.lowering.common.generic_text import module_text
from braid.lowering.common.upstream import to_llvm_ir
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.objects import OPTIONS, VERSION, emit_object
from braid.lowering.host.codegen.target_machine import host_machine
from braid.lowering.host.codegen.workers import compile_texts
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, ObjectCache, default_cache
from braid.support.progress import Steps
from braid.support.toolchain import braid_version, toolchain
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.machine import Machine


def cache_key(text: str, machine: Machine) -> str:
    """Return the digest of a kernel's text and of everything that turns it into an object."""
    return hashlib.sha256(f"{generator_key(machine)}\0{text}".encode()).hexdigest()


def generator_key(machine: Machine) -> str:
    """Return the digest of everything that turns texts into objects for a machine."""
    generator = (*toolchain(), braid_version(), ",".join(LLVM_PASSES), str(OPTIONS), str(VERSION))
    parts = (*generator, machine.triple, machine.cpu, machine.features)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


PLACEHOLDER = "braid_kernel_".ljust(128, "_")
"""The symbol of every kernel while it is compiled; as long as a symbol may be."""


def anonymous_text(kernel: Kernel) -> str:
    """Return the text of the kernel's module with the placeholder as the kernel's symbol."""
    own = [op for op in kernel.module.ops if isinstance(op, FuncOp)]
    own = [op for op in own if op.sym_name.data == kernel.symbol]
    for op in own:
        op.sym_name = StringAttr(PLACEHOLDER)
    text = module_text(kernel.module)
    for op in own:
        op.sym_name = StringAttr(kernel.symbol)
    assert not re.search(rf"@{re.escape(kernel.symbol)}\b", text), "a kernel calls itself"
    return text


def with_symbol(object_code: bytes, symbol: str) -> bytes:
    """Return the object with `symbol` in place of the placeholder in its string table.

    Names there end at a zero byte, so that a shorter one takes the room of a longer one.
    """
    placeholder = PLACEHOLDER.encode()
    encoded = symbol.encode()
    if len(encoded) > len(placeholder):
        raise BraidError(f"symbol '{symbol}' is longer than {len(placeholder)} bytes")
    assert object_code.count(placeholder) == 1, "a kernel has exactly one symbol"
    return object_code.replace(placeholder, encoded.ljust(len(placeholder), b"\0"))


def compile_text(text: str, machine: Machine) -> bytes:
    """Return the object file of a module in upstream dialects, compiled in this process.

    Raises BraidError if upstream MLIR or LLVM rejects it.
    """
    return emit_object(to_llvm_ir(text, LLVM_PASSES), machine)


def compile_kernel(kernel: Kernel, machine: Machine | None = None) -> bytes:
    """Return the object file that defines `kernel.symbol`; `machine` is the host by default.

    Raises BraidError naming the kernel if upstream MLIR or LLVM rejects it.
    """
    return compile_kernels([kernel], machine=machine, jobs=1)[0]


def compile_kernels(
    kernels: Sequence[Kernel],
    *,
    machine: Machine | None = None,
    jobs: int | None = None,
    cache: ObjectCache | None = None,
) -> list[bytes]:
    """Return the object files of `kernels`, in their order, compiled by `jobs` worker processes.

    `jobs` is by default the number of CPUs this process may use; 1 compiles in this process,
    which an instruction that LLVM cannot select would end. Raises BraidError naming the first
    kernel that cannot be compiled.
    """
    texts = [anonymous_text(kernel) for kernel in kernels]
    compiled = compile_anonymous(
        [kernel.symbol for kernel in kernels],
        texts,
        machine=machine or host_machine(),
        jobs=jobs or available_cpus(),
        cache=cache or default_cache(),
    )
    return [
        with_symbol(object_code, kernel.symbol)
        for kernel, (_, object_code) in zip(kernels, compiled, strict=True)
    ]


def available_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def compile_anonymous(
    names: Sequence[str],
    texts: Sequence[str],
    *,
    machine: Machine,
    jobs: int,
    cache: ObjectCache,
) -> list[tuple[str, bytes]]:
    """Return the objects of kernels' anonymous texts, each with its key in the cache.

    `names` are for diagnostics. Raises BraidError as `compile_kernels` does.
    """
    labels = [f"kernel '{name}'" for name in names]
    return _compiled(labels, texts, machine, jobs, cache)


def compile_program(text: str, *, machine: Machine, jobs: int, cache: ObjectCache) -> bytes:
    """Return the object of a host program, which is a module in upstream dialects.

    Raises BraidError if upstream MLIR or LLVM rejects it.
    """
    return _compiled(["the host program"], [text], machine, jobs, cache)[0][1]


def compile_llvm_ir(text: str, *, machine: Machine, cache: ObjectCache) -> bytes:
    """Return the object of a module of LLVM IR. Raises BraidError if LLVM rejects it."""
    key = cache_key(text, machine)
    object_code = cache.get(Kind.OBJECT, key)
    if object_code is None:
        object_code = emit_object(text, machine)
        cache.put(Kind.OBJECT, key, object_code)
    return object_code


def _compiled(
    labels: Sequence[str], texts: Sequence[str], machine: Machine, jobs: int, cache: ObjectCache
) -> list[tuple[str, bytes]]:
    """Return the objects of modules in upstream dialects, each with its key in the cache."""
    keys = [cache_key(text, machine) for text in texts]
    found = {key: cache.get(Kind.OBJECT, key) for key in set(keys)}
    missing = [key for key in dict.fromkeys(keys) if found[key] is None]
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    sources = [texts[first[key]] for key in missing]
    own = [labels[first[key]] for key in missing]
    for key, object_code in zip(missing, _compile(own, sources, machine, jobs), strict=True):
        cache.put(Kind.OBJECT, key, object_code)
        found[key] = object_code
    objects: list[tuple[str, bytes]] = []
    for key in keys:
        object_code = found[key]
        assert object_code is not None
        objects.append((key, object_code))
    return objects


def _compile(
    labels: Sequence[str], texts: Sequence[str], machine: Machine, jobs: int
) -> list[bytes]:
    if jobs > 1 and texts:
        return compile_texts(labels, texts, machine, min(jobs, len(texts)))
    objects: list[bytes] = []
    steps = Steps("compile", len(texts))
    for label, text in zip(labels, texts, strict=True):
        try:
            objects.append(compile_text(text, machine))
        except BraidError as error:
            raise BraidError(f"{label}: {error.message}") from error
        steps.finish(label)
    return objects
