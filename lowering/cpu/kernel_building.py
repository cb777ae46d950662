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
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.lowering.cpu.selection import KernelSelection, group_of
from braid.lowering.host.codegen.compiler import compile_anonymous
from braid.lowering.host.codegen.kernel_text import anonymous_text, module_text, with_symbol
from braid.lowering.host.codegen.object_key import cache_key
from braid.passes.kernels.outline_kernels import kernel_key
from braid.support.object_cache import Kind, ObjectCache
from braid.targets.backend import OBJECT, Code, KernelNeeds, needs_of
from braid.targets.kernels.family_calls import Match
from braid.targets.kernels.kernel_family import Kernel, KernelFamily, Schedule
from braid.targets.machines.machine import Machine

_KNOWN = frozenset({"braid", "builtins", "xdsl"})
"""Packages whose sources are in the key anyway, or do not change within a version of braid."""


@dataclass(frozen=True)
class _Order:
    """A kernel to be made: as `match` says, or by the fallback; `key` is its record's."""

    symbol: str
    group: FusedOp
    match: Match | None
    schedule: Schedule
    key: str

    def emit(self) -> Kernel:
        """The kernel before it is compiled."""
        if self.match is None:
            return emit_fallback(self.group, self.symbol)
        return self.match.emit(self.symbol, self.schedule)


@dataclass(frozen=True)
class _Recorded:
    """A kernel that was compiled before."""

    needs: KernelNeeds
    object_code: bytes


@dataclass(frozen=True)
class _Emitted:
    """A kernel that is still to be compiled; `key` is its record's."""

    needs: KernelNeeds
    kernel: Kernel
    key: str


class CpuKernels:
    """The kernels of functions that `outline-kernels` made; see `EmittedKernels`."""

    def __init__(
        self,
        functions: Sequence[func.FuncOp],
        families: Sequence[KernelFamily],
        *,
        machine: Machine,
        jobs: int,
        cache: ObjectCache,
    ) -> None:
        """Emit what no record says was compiled before; raises as `Backend.emit`."""
        self._machine, self._jobs, self._cache = machine, jobs, cache
        selection = KernelSelection(families)
        self._orders = [_order(function, selection, machine) for function in functions]
        self._kernels = [_recorded(order, cache) or _emitted(order) for order in self._orders]

    @property
    def needs(self) -> tuple[KernelNeeds, ...]:
        """What each kernel needs."""
        return tuple(kernel.needs for kernel in self._kernels)

    def link(self, functions: Sequence[func.FuncOp]) -> tuple[Code]:
        """One object a kernel; the functions themselves are the host program's."""
        missing = [kernel for kernel in self._kernels if isinstance(kernel, _Emitted)]
        made = iter(_compile(missing, self._machine, self._jobs, self._cache))
        objects = [
            kernel.object_code if isinstance(kernel, _Recorded) else next(made)
            for kernel in self._kernels
        ]
        return (Code(OBJECT, tuple(objects)),)

    def at(self, stage: str, functions: Sequence[func.FuncOp]) -> list[str]:
        """At `linalg`, the only stage: as the families emit them, a module each."""
        return [module_text(order.emit().module) for order in self._orders]


def _order(function: func.FuncOp, selection: KernelSelection, machine: Machine) -> _Order:
    group = group_of(function)
    match = selection.match(group)
    family = None if match is None else match.family
    schedule: Schedule = {} if match is None else match.default_schedule()
    name = "fallback" if family is None else f"{family.name} {family.version}"
    makers = frozenset(type(part).__module__.partition(".")[0] for part in (family, *group.walk()))
    sources = [_sources(), *map(_package_sources, sorted(makers - _KNOWN))]
    parts = (kernel_key(group), name, json.dumps(dict(schedule), sort_keys=True), *sources)
    key = cache_key("\0".join(parts), machine)
    return _Order(function.sym_name.data, group, match, schedule, key)


def _recorded(order: _Order, cache: ObjectCache) -> _Recorded | None:
    record = cache.get(Kind.KERNEL, order.key)
    if record is None:
        return None
    fields = json.loads(record)
    object_code = cache.get(Kind.OBJECT, fields["object"])
    if object_code is None:
        return None
    symbol = order.symbol
    needs = KernelNeeds(
        symbol,
        grid=int(fields["grid"]),
        scratch_bytes=int(fields["scratch_bytes"]),
        in_place=tuple((int(operand), int(result)) for operand, result in fields["in_place"]),
        overlap=fields["overlap"],
        barriers=tuple(fields["barriers"]),
    )
    return _Recorded(needs, with_symbol(object_code, symbol))


def _emitted(order: _Order) -> _Emitted:
    kernel = order.emit()
    return _Emitted(needs_of(kernel), kernel, order.key)


def _compile(
    emitted: Sequence[_Emitted], machine: Machine, jobs: int, cache: ObjectCache
) -> list[bytes]:
    names = [one.kernel.symbol for one in emitted]
    texts = [anonymous_text(one.kernel) for one in emitted]
    compiled = compile_anonymous(names, texts, machine=machine, jobs=jobs, cache=cache)
    objects: list[bytes] = []
    for one, (key, object_code) in zip(emitted, compiled, strict=True):
        needs = one.needs
        facts: dict[str, Any] = {
            "grid": needs.grid,
            "scratch_bytes": needs.scratch_bytes,
            "in_place": needs.in_place,
            "overlap": needs.overlap,
            "barriers": needs.barriers,
        }
        cache.put(Kind.KERNEL, one.key, json.dumps({**facts, "object": key}).encode())
        objects.append(with_symbol(object_code, needs.symbol))
    return objects


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
