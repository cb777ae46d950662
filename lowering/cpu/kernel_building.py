"""Kernels of outlined functions as objects, each emitted and compiled once for all time.

What a kernel becomes follows from its ops and layouts, the family and schedule, the machine, and
the sources of braid and of the packages that the family and the ops are from. A record on disk
under a digest of these says which object it was, so that a model that was compiled before is
neither emitted nor printed again.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from xdsl.dialects import func

import braid.analysis
import braid.dialects
import braid.lowering
import braid.passes
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.lowering.cpu.selection import family_for, group_of
from braid.lowering.host.codegen.compiler import compile_anonymous
from braid.lowering.host.codegen.kernel_text import anonymous_text, with_symbol
from braid.lowering.host.codegen.object_key import cache_key
from braid.lowering.host.codegen.target_machine import TargetMachineSpec
from braid.passes.kernels.outline_kernels import kernel_key
from braid.support.object_cache import Kind, ObjectCache
from braid.targets.kernels import family_calls
from braid.targets.kernels.kernel_family import InPlace, KernelFamily, KernelRequest, Schedule

_KNOWN = frozenset({"braid", "builtins", "xdsl"})
"""Packages whose sources are in the key anyway, or do not change within a version of braid."""


@dataclass(frozen=True)
class BuiltKernel:
    """An object that defines `symbol`; the rest is as in `Kernel`."""

    symbol: str
    grid: int
    scratch_bytes: int
    in_place: tuple[InPlace, ...]
    overlap: int | None
    barriers: tuple[int, ...]
    object_code: bytes


@dataclass(frozen=True)
class _Order:
    """A kernel to be made: by `family`, or the fallback, from `request`; `key` is its record's."""

    request: KernelRequest
    family: KernelFamily | None
    key: str


def build_kernels(
    functions: Sequence[func.FuncOp],
    families: Sequence[KernelFamily],
    *,
    machine: TargetMachineSpec,
    jobs: int,
    cache: ObjectCache,
) -> list[BuiltKernel]:
    """The kernels of functions that `outline-kernels` made, in their order.

    Raises BraidError naming the first kernel that cannot be compiled.
    """
    orders = [_order(function, families, machine) for function in functions]
    recorded = [_recorded(order, cache) for order in orders]
    missing = [order for order, kernel in zip(orders, recorded, strict=True) if kernel is None]
    made = iter(_build(missing, machine, jobs, cache))
    return [kernel or next(made) for kernel in recorded]


def _order(
    function: func.FuncOp, families: Sequence[KernelFamily], machine: TargetMachineSpec
) -> _Order:
    group = group_of(function)
    family = family_for(group, families)
    schedule: Schedule = family_calls.default_schedule(family, group) if family is not None else {}
    name = family.name if family is not None else "fallback"
    makers = frozenset(type(part).__module__.partition(".")[0] for part in (family, *group.walk()))
    sources = [_sources(), *map(_package_sources, sorted(makers - _KNOWN))]
    parts = (kernel_key(group), name, json.dumps(dict(schedule), sort_keys=True), *sources)
    request = KernelRequest(group, function.sym_name.data, schedule)
    return _Order(request, family, cache_key("\0".join(parts), machine))


def _recorded(order: _Order, cache: ObjectCache) -> BuiltKernel | None:
    record = cache.get(Kind.KERNEL, order.key)
    if record is None:
        return None
    fields = json.loads(record)
    object_code = cache.get(Kind.OBJECT, fields["object"])
    if object_code is None:
        return None
    symbol = order.request.symbol
    return BuiltKernel(
        symbol,
        grid=int(fields["grid"]),
        scratch_bytes=int(fields["scratch_bytes"]),
        in_place=tuple((int(operand), int(result)) for operand, result in fields["in_place"]),
        overlap=fields["overlap"],
        barriers=tuple(fields["barriers"]),
        object_code=with_symbol(object_code, symbol),
    )


def _build(
    orders: Sequence[_Order], machine: TargetMachineSpec, jobs: int, cache: ObjectCache
) -> list[BuiltKernel]:
    kernels = [
        family_calls.emit(order.family, order.request)
        if order.family
        else emit_fallback(order.request)
        for order in orders
    ]
    names = [kernel.symbol for kernel in kernels]
    texts = [anonymous_text(kernel) for kernel in kernels]
    compiled = compile_anonymous(names, texts, machine=machine, jobs=jobs, cache=cache)
    built: list[BuiltKernel] = []
    for order, kernel, (key, object_code) in zip(orders, kernels, compiled, strict=True):
        facts: dict[str, Any] = {
            "grid": kernel.grid,
            "scratch_bytes": kernel.scratch_bytes,
            "in_place": kernel.in_place,
            "overlap": kernel.overlap,
            "barriers": kernel.barriers,
        }
        cache.put(Kind.KERNEL, order.key, json.dumps({**facts, "object": key}).encode())
        named = with_symbol(object_code, kernel.symbol)
        built.append(BuiltKernel(kernel.symbol, **facts, object_code=named))
    return built


@cache
def _sources() -> str:
    """Digest of the sources that emit kernels: another version of braid may emit others."""
    packages = (braid.dialects, braid.analysis, braid.passes, braid.lowering)
    return _digest(package.__path__[0] for package in packages)


@cache
def _package_sources(name: str) -> str:
    """Digest of the sources of another package, or of a module that stands alone."""
    module = import_module(name)
    return _digest(getattr(module, "__path__", None) or [module.__file__ or ""])


def _digest(paths: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for path in map(Path, paths):
        files = sorted(path.resolve().rglob("*.py")) if path.is_dir() else [path]
        for file in files:
            digest.update(file.read_bytes())
    return digest.hexdigest()
