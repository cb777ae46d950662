"""Kernels of outlined functions as objects, equal ones emitted and compiled once for all time.

An object is kept under a digest of the code it is compiled from and of the code generator, and so
cannot be stale. A record under the kernel's `KernelKey` says which object that was, so that a model
that was compiled before is neither emitted nor printed again; it holds until a family raises its
version, or another version of a package is installed. The backend decides how code is compiled, and
how kernels without a family are made.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects import func

from braid.analysis.sizes.open_forms import symbols_in
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.discard import discard
from braid.lowering.common.upstream_ops import blamed_on, upstream_ops
from braid.lowering.host.codegen.compiler import PLACEHOLDER, anonymous_text, with_symbol
from braid.passes.outlining.outline_kernels import outlined_group
from braid.support.checked_calls import is_own
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, ObjectCache
from braid.support.progress import Steps
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.reading import parse_size
from braid.support.sizes.text import print_size
from braid.targets.backend import OBJECT, Code, KernelNeeds, needs_of
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.kernels.group_matches import Match
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.keys import GroupKey, KernelKey, stored_text
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.machine import Machine

Compiler = Callable[[Sequence[str], Sequence[str]], Sequence[tuple[str, bytes]]]
"""From names for diagnostics and anonymous texts to objects, each with its key in the cache."""


@dataclass(frozen=True)
class Fallback:
    """The emitter of the kernels of groups that no family takes, and the emitter's version."""

    emit: Callable[[FusedOp, str], Kernel]
    version: int


@dataclass(frozen=True)
class _Order:
    """A kernel to be made: as `match` says, or by the fallback; `key` is its record's.

    Two of one key differ in their symbols alone.
    """

    symbol: str
    group: FusedOp
    match: Match | None
    fallback: Fallback
    schedule: Entries
    key: str

    def emit(self) -> Kernel:
        """Return the kernel before it is compiled."""
        if self.match is None:
            return self.fallback.emit(self.group, self.symbol)
        return self.match.emit(self.symbol, self.schedule)


@dataclass(frozen=True)
class _Recorded:
    """A kernel that was compiled before."""

    needs: KernelNeeds
    object_code: bytes


@dataclass(frozen=True)
class _Emitted:
    """A kernel that is still to be compiled."""

    needs: KernelNeeds
    text: str


class BuiltKernels:
    """The kernels of functions that `outline-kernels` made; see `EmittedKernels`."""

    def __init__(
        self,
        functions: Sequence[func.FuncOp],
        selection: KernelChoice,
        fallback: Fallback,
        compile: Compiler,
        *,
        machine: Machine,
        cache: ObjectCache,
        generator: str,
        likely: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    ) -> None:
        """Emit code without a cached object; raises as `Backend.emit`.

        `generator` is the digest of the code generators: an object of another one is made anew.
        `likely` are the sizes at which functions were decided, by name; else those of `selection`.
        """
        self._compile, self._cache, self._generator = compile, cache, generator
        self._orders = [
            _order(
                function,
                selection.at(likely.get(function.sym_name.data, selection.likely)),
                fallback,
                machine,
            )
            for function in functions
        ]
        self._kernels: dict[str, _Recorded | _Emitted] = {}  # by key: equal ones are made once
        steps = Steps("emit", len(self._orders))
        for order in self._orders:
            if order.key not in self._kernels:
                self._kernels[order.key] = _recorded(order, cache, generator) or _emitted(order)
            steps.finish(f"kernel '{order.symbol}'")

    @property
    def needs(self) -> tuple[KernelNeeds, ...]:
        """The needs of each kernel."""
        return tuple(
            replace(self._kernels[order.key].needs, symbol=order.symbol) for order in self._orders
        )

    def link(self, functions: Sequence[func.FuncOp]) -> tuple[Code]:
        """Return one object a kernel; the functions themselves are in the host program."""
        emitted = {k: one for k, one in self._kernels.items() if isinstance(one, _Emitted)}
        try:
            made = _compiled(emitted, self._compile, self._cache, self._generator)
        except BraidError:
            self._blame(emitted)
            raise
        recorded = {
            key: one.object_code for key, one in self._kernels.items() if isinstance(one, _Recorded)
        }
        codes = made | recorded
        objects = [with_symbol(codes[order.key], order.symbol) for order in self._orders]
        called = sorted({name for one in self._kernels.values() for name in one.needs.libraries})
        return (Code(OBJECT, tuple(objects), libraries=tuple(called)),)

    def _blame(self, emitted: Mapping[str, _Emitted]) -> None:
        """Raise an error at the op of the model whose kernel cannot be compiled."""
        for order in self._orders:
            if order.key in emitted and upstream_ops(order.group):
                with blamed_on(order.group):
                    self._compile([order.symbol], [emitted[order.key].text])

    def at(self, stage: str, functions: Sequence[func.FuncOp]) -> list[str]:
        """Return the kernels as the families emit them, at `linalg`, the only stage."""
        texts: dict[str, str] = {}
        for order in self._orders:
            if order.key not in texts:
                known = self._kernels[order.key]
                texts[order.key] = (known if isinstance(known, _Emitted) else _emitted(order)).text
        return [texts[order.key].replace(PLACEHOLDER, order.symbol) for order in self._orders]


def _order(
    function: func.FuncOp, selection: KernelChoice, fallback: Fallback, machine: Machine
) -> _Order:
    group = outlined_group(function)
    chosen = selection.choose(group)
    match = None if chosen is None else chosen[0]
    schedule: Entries = {} if chosen is None else chosen[1]
    family = None if match is None else match.family
    likely = {name: selection.likely[name] for name in symbols_in(group)}
    key = KernelKey.of(
        group,
        GroupKey.of(stored_text(group), machine, likely=likely),
        family,
        schedule,
        fallback_version=fallback.version,
    ).digest
    return _Order(function.sym_name.data, group, match, fallback, schedule, key)


def _recorded(order: _Order, cache: ObjectCache, generator: str) -> _Recorded | None:
    record = cache.get(Kind.KERNEL, order.key)
    if record is None:
        return None
    fields = json.loads(record)
    if fields.get("generator") != generator:
        return None
    object_code = cache.get(Kind.OBJECT, fields["object"])
    if object_code is None:
        return None
    needs = KernelNeeds(
        order.symbol,
        grid=_read_extent(fields["grid"]),
        scratch_bytes=_read_extent(fields["scratch_bytes"]),
        in_place=tuple((int(operand), int(result)) for operand, result in fields["in_place"]),
        overlap=fields["overlap"],
        barriers=tuple(fields["barriers"]),
        libraries=tuple(fields.get("libraries", ())),
        features=tuple(fields.get("features", ())),
        sizes=tuple(cast(Size, parse_size(text)) for text in fields.get("sizes", ())),
    )
    return _Recorded(needs, object_code)


def _read_extent(field: int | str) -> Extent:
    """Return an extent as `_extent_field` wrote it."""
    return parse_size(field) if isinstance(field, str) else field


def _extent_field(extent: Extent) -> int | str:
    """Return an extent for a record: a size as text."""
    return extent if isinstance(extent, int) else print_size(extent)


def _emitted(order: _Order) -> _Emitted:
    with blamed_on(order.group):
        kernel = order.emit()
    made = _Emitted(needs_of(kernel), anonymous_text(kernel))
    # Other packages may hand out one module twice.
    if order.match is None or is_own(order.match.family):
        discard(kernel.module)
    return made


def _compiled(
    emitted: Mapping[str, _Emitted], compile: Compiler, cache: ObjectCache, generator: str
) -> dict[str, bytes]:
    """Return the object by key, with no symbol yet."""
    names = [one.needs.symbol for one in emitted.values()]
    texts = [one.text for one in emitted.values()]
    objects: dict[str, bytes] = {}
    compiled = compile(names, texts)
    for (record, one), (key, object_code) in zip(emitted.items(), compiled, strict=True):
        needs = one.needs
        facts: dict[str, Any] = {
            "grid": _extent_field(needs.grid),
            "scratch_bytes": _extent_field(needs.scratch_bytes),
            "in_place": needs.in_place,
            "overlap": needs.overlap,
            "barriers": needs.barriers,
            "libraries": needs.libraries,
            "features": needs.features,
            "sizes": [print_size(size) for size in needs.sizes],
            "generator": generator,
        }
        cache.put(Kind.KERNEL, record, json.dumps({**facts, "object": key}).encode())
        objects[record] = object_code
    return objects
