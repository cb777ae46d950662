"""Kernels to object code: through the cache, and otherwise through upstream MLIR and LLVM."""

import os
from collections.abc import Sequence

from braid.lowering.common.upstream import to_llvm_ir
from braid.lowering.host.codegen.kernel_text import anonymous_text, with_symbol
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.object_key import cache_key
from braid.lowering.host.codegen.objects import emit_object
from braid.lowering.host.codegen.target_machine import host_machine
from braid.lowering.host.codegen.workers import compile_texts
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, ObjectCache, default_cache
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.machine import Machine


def compile_text(text: str, machine: Machine) -> bytes:
    """The object file of a module in upstream dialects, compiled in this process.

    Raises BraidError if upstream MLIR or LLVM rejects it.
    """
    return emit_object(to_llvm_ir(text, LLVM_PASSES), machine)


def compile_kernel(kernel: Kernel, machine: Machine | None = None) -> bytes:
    """The object file that defines `kernel.symbol`; `machine` is the host by default.

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
    """The object files of `kernels`, in their order, compiled by `jobs` worker processes.

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
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def compile_anonymous(
    names: Sequence[str],
    texts: Sequence[str],
    *,
    machine: Machine,
    jobs: int,
    cache: ObjectCache,
) -> list[tuple[str, bytes]]:
    """The objects of kernels' anonymous texts, each with its key in the cache.

    `names` are for diagnostics. Raises BraidError as `compile_kernels` does.
    """
    keys = [cache_key(text, machine) for text in texts]
    found = {key: cache.get(Kind.OBJECT, key) for key in set(keys)}
    missing = [key for key in dict.fromkeys(keys) if found[key] is None]
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    sources = [texts[first[key]] for key in missing]
    labels = [names[first[key]] for key in missing]
    for key, object_code in zip(missing, _compile(labels, sources, machine, jobs), strict=True):
        cache.put(Kind.OBJECT, key, object_code)
        found[key] = object_code
    objects: list[tuple[str, bytes]] = []
    for key in keys:
        object_code = found[key]
        assert object_code is not None
        objects.append((key, object_code))
    return objects


def _compile(
    names: Sequence[str], texts: Sequence[str], machine: Machine, jobs: int
) -> list[bytes]:
    if jobs > 1 and texts:
        return compile_texts(names, texts, machine, min(jobs, len(texts)))
    objects: list[bytes] = []
    for name, text in zip(names, texts, strict=True):
        try:
            objects.append(compile_text(text, machine))
        except BraidError as error:
            raise BraidError(f"kernel '{name}': {error.message}") from error
    return objects
