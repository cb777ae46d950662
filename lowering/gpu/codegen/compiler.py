"""Kernels of GPUs to code: through the cache, and otherwise in worker processes."""

import hashlib
from collections.abc import Sequence

from braid.lowering.common.generic_text import module_text
from braid.lowering.gpu.codegen.messages import Compiled, Request
from braid.lowering.gpu.codegen.nvvm_passes import NVVM_PASSES
from braid.lowering.gpu.codegen.worker import answer
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.host.codegen.compiler import available_cpus
from braid.lowering.host.codegen.objects import OPTIONS
from braid.lowering.host.codegen.workers import ask_workers
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, ObjectCache, default_cache
from braid.support.toolchain import braid_version, toolchain
from braid.targets.machines.identity import machine_text
from braid.targets.machines.machine import Machine

WORKER = "braid.lowering.gpu.codegen.worker"

CODE_VERSION = 7
"""The version of the code generation from a kernel's text, besides the passes: increased when it
makes other code."""


def compile_gpu_kernels(
    kernels: Sequence[GpuKernel],
    device: Machine,
    host: Machine,
    *,
    jobs: int | None = None,
    cache: ObjectCache | None = None,
) -> list[Compiled]:
    """Return PTX for `device` and objects for `host` of kernels, in their order.

    LLVM ends the process if it cannot select an instruction, so it runs in `jobs` other processes,
    by default one per CPU, and in this one only if `jobs` is 1. Raises BraidError naming the first
    kernel that cannot be compiled.
    """
    cache = cache or default_cache()
    requests = [Request(module_text(k.module), k.launches, device, host) for k in kernels]
    keys = [_key(request) for request in requests]
    found = {key: _cached(cache, key) for key in keys}
    missing = [n for n, key in enumerate(keys) if found[key] is None and keys.index(key) == n]
    if missing:
        labels = [f"kernel '{kernels[n].symbol}'" for n in missing]
        answers = _compile(labels, [requests[n] for n in missing], jobs or available_cpus())
        for n, compiled in zip(missing, answers, strict=True):
            found[keys[n]] = compiled
            cache.put(Kind.OBJECT, _part(keys[n], "ptx"), compiled.ptx)
            cache.put(Kind.OBJECT, _part(keys[n], "emulated"), compiled.emulated)
    return [own for key in keys if (own := found[key]) is not None]


def _compile(labels: Sequence[str], requests: Sequence[Request], jobs: int) -> list[Compiled]:
    if jobs > 1:
        amounts = [len(request.text) for request in requests]
        return ask_workers(WORKER, labels, requests, min(jobs, len(requests)), amounts)
    answers: list[Compiled] = []
    for label, request in zip(labels, requests, strict=True):
        found = answer(request)
        if isinstance(found, str):
            raise BraidError(f"{label}: {found}")
        answers.append(found)
    return answers


def _cached(cache: ObjectCache, key: str) -> Compiled | None:
    ptx = cache.get(Kind.OBJECT, _part(key, "ptx"))
    emulated = cache.get(Kind.OBJECT, _part(key, "emulated"))
    return None if ptx is None or emulated is None else Compiled(ptx, emulated)


def _part(key: str, part: str) -> str:
    return hashlib.sha256(f"{key} {part}".encode()).hexdigest()


def _key(request: Request) -> str:
    """Return the digest of a kernel's text and of everything that turns it into code."""
    machines = machine_text(request.device), machine_text(request.host)
    generator = (*toolchain(), braid_version(), ",".join(NVVM_PASSES), str(OPTIONS))
    parts = (request.text, repr(request.launches), *machines, *generator, str(CODE_VERSION))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
