"""What thresholds pick, from their description: all paths and all choices are tried.

Nothing of `select-rematerialization` has a part in it: no graphs with numbers, no order in which
edges are judged. Ops of a block are its top level; a value read in a region is read by that op.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from braid.dialects.braid.opaque import OpaqueOp

ENDS = (scf.YieldOp, scf.ConditionOp, ReturnOp)

PAIRS = {
    (producer, reader)
    for producers, readers in (
        (("elementwise", "reduce"), ("elementwise", "reduce")),
        (("matmul",), ("elementwise", "reduce")),
        (("elementwise",), ("matmul",)),
    )
    for producer in producers
    for reader in readers
}
"""Kinds of ops of random programs that fuse, as the default rules say."""


@dataclass(frozen=True)
class Options:
    """The options of the pass, in bytes."""

    tensor: int | None = None
    peak: int | None = None
    jump: int | None = None
    fuse: bool = False
    mode: str = "union"
    everything: bool = False

    def text(self) -> str:
        parts = [
            f"{name}-threshold={limit}"
            for name, limit in (("tensor", self.tensor), ("peak", self.peak), ("jump", self.jump))
            if limit is not None
        ]
        parts += ["fusion-rules=default"] if self.fuse else []
        parts += ["peak=all"] if self.everything else []
        return " ".join([*parts, f"mode={self.mode}"])


Edge = tuple[SSAValue, Operation]
"""A tensor and the op of its block that reads it, itself or in its regions."""


def seen(value: SSAValue) -> SSAValue:
    """Return the tensor of which a reshape is a view."""
    while isinstance(value, OpResult) and value.op.name == "braid.reshape":
        value = value.op.operands[0]
    return value


def kind(op: Operation) -> str:
    name = op.name.removeprefix("braid.")
    return "elementwise" if name in ("neg", "abs", "floor", "add", "sub", "maximum") else name


def size(value: SSAValue) -> int:
    owner = value.owner
    if isinstance(owner, OpaqueOp) and isinstance(owner.bytes, DenseArrayBase):
        return owner.bytes.get_values()[value.index]
    if not isinstance(value.type, TensorType):
        return 0
    return prod(value.type.get_shape()) * {"i1": 1, "i64": 8}.get(str(value.type.element_type), 4)


@dataclass
class Choice:
    """What is recomputed in a block, and what runs where it stood."""

    sets: dict[Edge, frozenset[Operation]] = field(default_factory=dict[Edge, frozenset[Operation]])
    stay: frozenset[Operation] = frozenset()


class ByHand:
    """The edges of one block, judged one by one."""

    def __init__(self, block: Block, options: Options) -> None:
        self.block = block
        self.options = options
        leaves = ("braid.constant", "braid.parameter", "braid.reshape")
        self.ops = [op for op in block.ops if op.name not in leaves and not isinstance(op, ENDS)]
        self.place = {op: place for place, op in enumerate(self.ops)}
        self.handed_on = {
            seen(value) for value in (block.last_op.operands if block.last_op else ())
        }
        self.is_picked = cache(self._is_picked)
        self.reads = cache(self._reads)

    def _reads(self, op: Operation) -> frozenset[SSAValue]:
        """Return the operands of `op` and its regions from outside."""
        values = (seen(value) for inner in op.walk() for value in inner.operands)
        return frozenset(value for value in values if not _is_inside(value, op))

    def edges(self) -> Iterator[Edge]:
        for op in self.ops:
            for value in self.reads(op):
                if value.owner in self.place:
                    yield value, op

    # ---- what the options mean ----

    def paths(self, first: Operation, last: Operation) -> Iterator[tuple[Operation, ...]]:
        """All ways that data takes from `first` to `last`, without the two."""
        for value, reader in self.edges():
            if value.owner is first and reader is last:
                yield ()
            elif value.owner is first:
                for way in self.paths(reader, last):
                    yield (reader, *way)

    def live(self, op: Operation) -> int:
        """Bytes while `op` runs."""
        now = self.place[op]
        total = sum(
            size(value)
            for maker in self.ops[: now + 1]
            for value in maker.results
            if self._end(value) >= now
        )
        if self.options.everything:
            read = {value for reader in self.ops for value in self.reads(reader)} | self.handed_on
            outside = {value for value in read if value.owner not in self.place}
            total += sum(size(value) for value in outside if self._end(value) >= now)
        return total + inner_peak(op)

    def _end(self, value: SSAValue) -> int:
        if value in self.handed_on:
            return len(self.ops) - 1
        readers = [self.place[op] for op in self.ops if value in self.reads(op)]
        return max([self.place.get(value.owner, -1), *readers])

    def _is_picked(self, value: SSAValue, reader: Operation) -> bool:
        options, maker = self.options, value.owner
        ends = [op for op in reader.walk() if isinstance(op, ENDS)]
        if any(seen(handed) is value for end in ends for handed in end.operands):
            return False
        is_read = any(leaf_readers(value, reader))
        if not can_run_again(maker) or not isinstance(value.type, TensorType) or not is_read:
            return False
        ways = list(self.paths(maker, reader))
        longer = [way for way in ways if way]
        tests: list[bool] = []
        high = (
            bool(longer)
            and options.peak is not None
            and (max(self.live(op) for way in longer for op in way) > options.peak)
        )
        large = options.tensor is not None and size(value) > options.tensor
        if options.tensor is not None and options.peak is not None:
            tests.append(high if longer else large)
        elif options.tensor is not None:
            tests.append(large)
        elif options.peak is not None:
            tests.append(high)
        if options.jump is not None:
            members = self.members(value, reader)
            made = {result for op in members for result in op.results}
            read = {v for op in members for v in self.reads(op)} - made
            sizes = [
                size(v)
                for v in read
                if isinstance(v.type, TensorType)
                and not (isinstance(v.owner, Operation) and v.owner.name == "braid.constant")
            ]
            tests.append(any(size(value) - s > options.jump for s in sizes))
        if options.fuse:
            direct = list(leaf_readers(value, reader))
            tests.append(bool(longer) or all(fuses(maker, op) for op in direct))
        return bool(tests) and (all(tests) if options.mode == "all" else any(tests))

    def members(self, value: SSAValue, reader: Operation) -> frozenset[Operation]:
        """Return the maker of `value`, and its operands that are not stored for it, without
        products."""
        longer = any(self.paths(value.owner, reader))
        found = {value.owner}
        while True:
            more = {
                v.owner
                for op in found
                for v in self.reads(op)
                if v.owner in self.place and can_run_again(v.owner) and v.owner not in found
                if self.is_picked(v, op) or self._would_be_held(v, op, value, reader, longer)
            }
            if not more:
                return frozenset(found)
            found |= more

    def _would_be_held(
        self, v: SSAValue, op: Operation, value: SSAValue, reader: Operation, longer: bool
    ) -> bool:
        dead = self._end(v) < self.place[reader]
        return size(v) >= size(value) and dead and (longer or fuses(v.owner, op))

    # ---- which sets are made ----

    def choices(self, candidates: list[Edge]) -> list[Choice]:
        """All subsets of `candidates` that are what is picked of all readers that still run."""
        found: list[Choice] = []
        for count in range(len(candidates) + 1):
            for chosen in itertools.combinations(candidates, count):
                sets = {edge: self.members(*edge) for edge in chosen}
                stay = self._running(sets)
                if set(chosen) == {edge for edge in candidates if edge[1] in stay}:
                    found.append(Choice(sets, frozenset(stay)))
        return found

    def _running(self, sets: dict[Edge, frozenset[Operation]]) -> set[Operation]:
        """Return the ops that run in place if `sets` are applied."""
        used = {value for _, value in ((op, v) for op in self.ops for v in self.reads(op))}
        stay = {
            op
            for op in self.ops
            if not can_run_again(op)
            or any(result in self.handed_on for result in op.results)
            or not any(result in used for result in op.results)
        }
        while True:
            needed = set[SSAValue]()
            for op in stay:
                for value in self.reads(op):
                    members = sets.get((value, op))
                    if members is None:
                        needed.add(value)
                    else:
                        needed |= {
                            v for m in members for v in self.reads(m) if v.owner not in members
                        }
            more = {v.owner for v in needed if v.owner in self.place} - stay
            if not more:
                return stay
            stay |= more


def inner_peak(op: Operation) -> int:
    """Return the most bytes of values in the regions of `op`."""
    peaks = [0]
    for region in op.regions:
        for block in region.blocks:
            inside = ByHand(block, Options())
            peaks += [inside.live(inner) for inner in inside.ops]
    return max(peaks)


def can_run_again(op: Operation | Block) -> bool:
    """Only control flow, and ops that are run for their effect, cannot."""
    return isinstance(op, Operation) and not op.regions and bool(op.results)


def fuses(producer: Operation, reader: Operation) -> bool:
    direct = any(value in producer.results for value in reader.operands)
    return direct and (kind(producer), kind(reader)) in PAIRS


def leaf_readers(value: SSAValue, reader: Operation) -> Iterator[Operation]:
    """Return the ops that compute with `value`: `reader`, or ops in its regions."""
    for op in reader.walk():
        if op.name != "braid.reshape" and value in map(seen, op.operands):
            yield op


def _is_inside(value: SSAValue, op: Operation) -> bool:
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        around = block.parent_op()
        if around is op:
            return True
        block = around.parent if around is not None else None
    return False
