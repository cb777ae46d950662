"""`select-splits`: the number of parts of each op that does not fit a memory."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.storage.tensor_storage import is_addressing
from braid.dialects.braid.attribute_names import SPLIT
from braid.dialects.braid.base import TensorOp, integers, shape_of
from braid.dialects.braid.regions import FusedOp
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.passes.split.part_counts import counts_in_order, select_counts
from braid.passes.split.split_dims import op_bytes, part_bytes, split_dims
from braid.passes.split.split_preferences import (
    Chosen,
    aligned_counts,
    asked_first,
    check_dim_names,
    readable_first,
)
from braid.support.byte_sizes import format_size, parse_size
from braid.support.errors import BraidError, InfeasibleError
from braid.targets.machines.resolve import device_of, runs_on, target_of
from braid.targets.machines.target import Device, Target
from braid.targets.simulator.steps import steps_of

MARGIN = 8
"""The default limit leaves one part in this many of the memory free, for code and constants."""


def memory_limits(
    memory: str | int | None, target: Target, devices: Collection[str] = ()
) -> Callable[[Operation], int]:
    """Return the bytes that an op may use: `memory`, or the memory of its device's units less a
    margin.

    An op on several units may use the least of their memories. If `devices` are given, an op on
    another device has no limit.
    """
    try:
        size = None if memory is None else parse_size(memory)
    except ValueError as error:
        raise BraidError(f"option 'memory': {error}") from error

    def limit(op: Operation) -> int:
        if not runs_on(op, devices, target):
            return sys.maxsize
        return memory_of(device_of(op, target), op) if size is None else size

    def memory_of(device: Device, op: Operation) -> int:
        backend = target.backend_of(device)
        if not backend.memories:
            raise BraidError(
                f"device '{device.name}' of target '{target.name}' has no memory",
                hint="give the option memory=<bytes>",
            )
        found = [backend.memory_of(backend.units[step.unit]) for step in steps_of(op, backend)]
        memories = [memory for memory in found if memory is not None] or backend.memories
        return min(memory.bytes for memory in memories) * (MARGIN - 1) // MARGIN

    return limit


def is_splittable(op: Operation) -> bool:
    """Return whether `op` moves or computes something."""
    return isinstance(op, FusedOp) or (isinstance(op, TensorOp) and not is_addressing(op))


def splittable_ops(module: ModuleOp) -> Iterator[Operation]:
    """Yield the ops of the public functions that move or compute something, without the ops in
    groups."""

    def visit(op: Operation) -> Iterator[Operation]:
        if is_splittable(op):
            yield from [op] if op.results else []
        elif not isinstance(op, TensorOp):
            for region in op.regions:
                for block in region.blocks:
                    for inner in block.ops:
                        yield from visit(inner)

    for function in module.ops:
        if isinstance(function, func.FuncOp) and function.sym_visibility is None:
            yield from visit(function)


@dataclass(frozen=True)
class SelectSplitsPass(DecisionPass):
    """Decides for each op that uses more than `memory` bytes into how many parts it is split.

    In: ops before fusion. Out: `braid.split` on those ops: parts per dim of the result, then per
    reduced dim. An op uses its operands, each once, and its results. The default of `memory` is
    that of the units of `target` that the op runs on, less an eighth; sizes may have units. With
    `devices` only ops on these are split. Reduced dims are split only with `allow_split_reduction`.
    A reader of a split op is split in the same way if possible, so that parts need not be joined.
    With `follow_readers` more of them do: if the kind of an op leaves the choice, it is split along
    a dim of its readers' splits, and readers follow in the dims in which they can, including
    concatenations. There is then less to move, but more ops are ordered as one.

    `dims` are split first, the first of them as far as it helps, then the next: `N,C` are frames,
    then channels; `D`, `H` and `W` the last three dims of images, numbers dims of any result. Parts
    that are still too large are split along other dims, too.

    Raises InfeasibleError for an op of which no part fits, and UnsupportedError for open dims.

    ```mlir
    %y = braid.exp %x {braid.split = array<i64: 2, 1>} : (tensor<8x9xf32>) -> tensor<8x9xf32>
    ```
    """

    name = "select-splits"

    memory: int | str | None = None
    target: str | None = None
    allow_split_reduction: bool = False
    follow_readers: bool = False
    devices: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the decision."""
        limit_of = memory_limits(self.memory, target_of(op, self.target), self.devices)
        self.decide(list(splittable_ops(op)), limit_of)

    def decide(self, ops: Sequence[Operation], limit_of: Callable[[Operation], int]) -> None:
        """Write it on those of `ops`, in the order of data, that use more than their limit."""
        check_dim_names(self.dims)
        chosen: Chosen = {}
        for each in ops:
            each.attributes.pop(SPLIT, None)
            if (used := op_bytes(each)) > limit_of(each):
                counts = self._select(each, used, limit_of, chosen)
                chosen.update((result, counts) for result in each.results)
                entries = range(max([len(shape_of(each.results[0])) - 1, *counts]) + 1)
                each.attributes[SPLIT] = integers([counts.get(dim, 1) for dim in entries])

    def _select(
        self,
        op: Operation,
        used: int,
        limit_of: Callable[[Operation], int],
        chosen: Mapping[SSAValue, dict[int, int]],
    ) -> dict[int, int]:
        limit = limit_of(op)
        dims = split_dims(op, self.allow_split_reduction)
        if self.follow_readers:
            dims = readable_first(op, dims, limit_of)
        dims, asked = asked_first(op, dims, self.dims)
        if asked:
            counts = counts_in_order(op, dims, limit)
        else:
            counts = next(
                (
                    found
                    for start in (*aligned_counts(op, dims, chosen, self.follow_readers), {})
                    if (found := select_counts(op, dims, limit, start)) is not None
                ),
                None,
            )
        if counts is None:
            raise InfeasibleError(
                f"'{op.name}' uses {format_size(used)} ({used} bytes) and cannot be split to fit "
                f"{format_size(limit)} ({limit} bytes)",
                location=source_location(op),
                hint=self._hint(op),
            )
        many = " x ".join(f"{count} along dim {dim}" for dim, count in sorted(counts.items()))
        parts = part_bytes(op, dims, counts)
        emit_remark(
            op,
            self.name,
            f"{used} bytes, limit {limit}: {many}, at most {parts:.0f} bytes each",
            bytes=used,
            limit=limit,
            part_bytes=parts,
        )
        return counts

    def _hint(self, op: Operation) -> str:
        if not self.allow_split_reduction and any(d.combine for d in split_dims(op, True)):
            return "give more memory, or allow-split-reduction=true"
        return "give more memory"
