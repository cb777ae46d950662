"""Report the memory of a planned function: its arena, and the values that are live at the peak."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from braid.analysis.storage.tensor_storage import storage_bytes
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import (
    ARENA_BOUND,
    ARENA_BYTES,
    BUFFERS,
    EXPANDED_BYTES,
    SCRATCH_BUFFER,
    SLOTS,
    WEIGHTS_BYTES,
)
from braid.dialects.braid.buffer import ALIGNMENT, BufferAttr
from braid.dialects.braid.launch import LaunchOp
from braid.dialects.braid.names import names_of
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.plan_memory import Plan
from braid.passes.storage.storage import Storage
from braid.support.memory_report import MemoryReport, TensorMemory
from braid.targets.machines.resolve import target_of

_LARGEST = 8


@dataclass(frozen=True)
class LiveTensor:
    """A buffer and the first and last step, counted from 0, at which it is needed.

    `readers` are the steps that read its contents.
    """

    tensor: TensorMemory
    first: int
    last: int
    readers: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemoryTimeline:
    """The ops of a planned function in their order, and when each buffer is in use."""

    steps: tuple[str, ...]
    tensors: tuple[LiveTensor, ...]


def memory_timeline(function: FuncOp, target: str | None = None) -> MemoryTimeline:
    """Return the contents of memory at each step of a function after `plan-memory`."""
    plan = Plan(function, MemorySpaces(target_of(function, target)))
    numbers = {n: op for n, op in _numbers(plan, function).items() if not is_leaf(op)}
    every = sorted(numbers)
    readers: defaultdict[Storage, set[int]] = defaultdict(set)
    for value, storage in plan.values.of.items():
        for use in value.uses:
            begin = plan.values.numbering.span(use.operation).start
            readers[storage].add(min(bisect_left(every, begin), len(every) - 1))
    live: list[LiveTensor] = []
    for storage, tensor in _tensors(plan).items():
        first = bisect_left(every, storage.lower)
        last = max(bisect_right(every, storage.upper) - 1, first)
        first, last = min(first, len(every) - 1), min(last, len(every) - 1)
        live.append(LiveTensor(tensor, first, last, tuple(sorted(readers[storage]))))
    return MemoryTimeline(tuple(_name(numbers[number]) for number in every), tuple(live))


def memory_report(function: FuncOp, target: str | None = None) -> MemoryReport:
    """Return the report of a function after `plan-memory`."""
    plan = Plan(function, MemorySpaces(target_of(function, target)))
    tensors = _tensors(plan)
    in_arena = {s: t for s, t in tensors.items() if t.space == "arena"}
    peak = _peak(list(in_arena))
    at_peak = [s for s in in_arena if any(b <= peak < e for b, e in s.lifetimes_apart)]
    if plan.values.order.streams > 1:
        # A moment has no op: the last that begins is one that may run then.
        peak = max((storage.lower for storage in at_peak), default=-1)
    numbers, attributes = _numbers(plan, function), function.attributes
    stored = [
        t
        for t in tensors.values()
        if t.space not in ("weights", "expanded") and t.space[:6] != "input:"
    ]
    return MemoryReport(
        function=function.sym_name.data,
        arena_bytes=_integer(function, ARENA_BYTES),
        lower_bound=_integer(function, ARENA_BOUND),
        output_bytes=sum(map(storage_bytes, function.function_type.outputs)),
        weights_bytes=_integer(function, WEIGHTS_BYTES),
        peak_op=_name(numbers[peak]) if peak in numbers else "",
        live=_largest([in_arena[storage] for storage in at_peak]),
        largest=_largest(stored)[:_LARGEST],
        slot_bytes=_slot_bytes(function),
        expanded_bytes=_integer(function, EXPANDED_BYTES) if EXPANDED_BYTES in attributes else 0,
    )


def _slot_bytes(function: FuncOp) -> int:
    """Return the contents of the channels after launches, as the runtime lays their slots out."""
    total = 0
    for op in function.body.block.ops:
        slots = op.attributes.get(SLOTS)
        if isinstance(op, LaunchOp) and isinstance(slots, DenseArrayBase):
            for value, count in zip(op.outputs, slots.get_values(), strict=True):
                total += -(-storage_bytes(value.type) // ALIGNMENT) * ALIGNMENT * int(count)
    return total


def _numbers(plan: Plan, function: FuncOp) -> dict[int, Operation]:
    return {plan.values.numbering.span(op).start: op for op in function.walk() if op != function}


def _tensors(plan: Plan) -> dict[Storage, TensorMemory]:
    """Return every buffer once, with the first value that is in it."""
    tensors: dict[Storage, TensorMemory] = {}
    for value, storage in plan.values.of.items():
        place = _place(value)
        if place is not None and storage not in tensors and not plan.values.offset.get(value):
            tensors[storage] = TensorMemory(
                _name(value.owner),
                str(value.type),
                storage.bytes,
                place.space.data,
                place.offset.data,
            )
    for call, storage in plan.scratch.items():
        place = call.attributes[SCRATCH_BUFFER]
        assert isinstance(place, BufferAttr)
        tensors[storage] = TensorMemory(
            f"scratch of {_name(call)}", "", storage.bytes, place.space.data, place.offset.data
        )
    return tensors


def _peak(storages: Sequence[Storage]) -> int:
    """Return the first op or moment at which most bytes are live, -1 if none ever are."""
    lifetimes = [(s.bytes, *interval) for s in storages for interval in s.lifetimes_apart]
    live = np.zeros(max((end for _, _, end in lifetimes), default=0), np.int64)
    for size, begin, end in lifetimes:
        live[begin:end] += size
    return int(live.argmax()) if live.size else -1


def _largest(tensors: Sequence[TensorMemory]) -> tuple[TensorMemory, ...]:
    return tuple(sorted(tensors, key=lambda tensor: -tensor.bytes))


def _place(value: SSAValue) -> BufferAttr | None:
    buffers = value.op.attributes.get(BUFFERS) if isinstance(value, OpResult) else None
    if not isinstance(value, OpResult) or not isinstance(buffers, ArrayAttr):
        return None
    place = cast(ArrayAttr[Attribute], buffers).data[value.index]
    return place if isinstance(place, BufferAttr) else None


def _name(owner: object) -> str:
    return ", ".join(names_of(owner)) or owner.name if isinstance(owner, Operation) else ""


def _integer(function: FuncOp, name: str) -> int:
    attribute = function.attributes[name]
    assert isinstance(attribute, IntegerAttr)
    return int(attribute.value.data)
