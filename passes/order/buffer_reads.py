"""Find which ops of a block read which buffers on a chip, and which values go through memory
instead."""

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import is_addressing
from braid.dialects.braid.regions import GroupOp
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.memory_problem import may_overwrite, storage_root
from braid.support.byte_sizes import format_size
from braid.support.errors import InfeasibleError
from braid.targets.simulator.buffers import buffers_of
from braid.targets.simulator.steps import is_declared


def _by_structure(block: BlockGraph) -> list[Operation]:
    """Return the ops of `block` in an order that is the same however they stand.

    Makers of operands come first, from those of the results of the block on. Buffers are numbered
    by it: if a plan of loads and evictions has a choice among equals, the numbers decide, and the
    plan for an order must equal the plan at lowering, when the ops are in that order.
    """
    found: dict[Operation, None] = {}
    last = block.block.last_op
    for root in (*([] if last is None else [last]), *block.ops):
        stack = [(root, False)]
        while stack:
            op, ready = stack.pop()
            if ready:
                found[op] = None
            elif op not in found:
                stack.append((op, True))
                read = [value.owner for inner in op.walk() for value in inner.operands]
                makers = [owner for owner in read if isinstance(owner, Operation)]
                stack += [(maker, False) for maker in reversed(makers) if maker in block.index]
    return [op for op in found if op in block.index]


@dataclass
class BufferReads:
    """`readers` are the ops that read each buffer, whose order does not depend on that of the ops.

    A value is `stored` if an op reads a part of it and the whole does not fit with the op's other
    operands; its parts are then loaded: `sources` has the position of the whole for each part.
    Results of the block are stored as well.
    """

    capacity: int
    stored: set[SSAValue] = field(default_factory=set[SSAValue])
    readers: dict[SSAValue, list[int]] = field(default_factory=dict[SSAValue, list[int]])
    sources: dict[SSAValue, list[int]] = field(default_factory=dict[SSAValue, list[int]])

    @staticmethod
    def of(block: BlockGraph, capacity: int) -> "BufferReads":
        """Return the reads of `block` on a chip that holds `capacity` bytes.

        Raises InfeasibleError for an op whose operands and results do not fit.
        """
        found = BufferReads(capacity)
        moving = [(block.index[op], op) for op in _by_structure(block) if moves(op)]
        changed = True
        while changed:
            changed = sum(found._store_what_does_not_fit(op) for _, op in moving) > 0
        parts: dict[tuple[SSAValue, SSAValue], None] = {}
        for number, op in moving:
            for result in op.results:
                found.readers.setdefault(result, [])
            for whole, part in _buffers_read(op):
                used = part if whole in found.stored else whole
                users = found.readers.setdefault(used, [])
                if number not in users:
                    users.append(number)
                if used is not whole:
                    parts[whole, part] = None
        position = {value: place for place, value in enumerate(found.readers)}
        for whole, part in parts:
            found.sources.setdefault(part, []).append(position[whole])
        end = block.block.last_op
        for whole, _ in _buffers_read(end) if end is not None else ():
            found.stored.add(whole)
        return found

    def overwritable(self, op: Operation) -> list[SSAValue]:
        """Return the buffers over which `op` may write its result, if it is the last to read them.

        Each holds all of one operand, element by element where the result's is, and is part of
        no other operand.
        """
        if not moves(op):
            return []
        buffers = [list(buffers_of(operand)) for operand in op.operands]
        size, roots = value_bytes(op.results[0]), may_overwrite(op)
        found: list[SSAValue] = []
        for operand, own in zip(op.operands, buffers, strict=True):
            if len(own) == 1 and storage_root(operand) in roots:
                whole, part = own[0]
                used = whole if whole in self.readers else part
                alone = sum(whole is other for each in buffers for other, _ in each) == 1
                if alone and value_bytes(used) == size:
                    found.append(used)
        return found

    def _store_what_does_not_fit(self, op: Operation) -> bool:
        """Let parts go through memory until `op` fits, and return whether that was needed."""
        buffers = _buffers_read(op)
        made, before = sum(map(value_bytes, op.results)), len(self.stored)
        torn = {part for whole, part in buffers if part is not whole and whole in self.stored}
        self.stored |= {whole for whole, part in buffers if part in torn}
        while made + self._held(buffers) > self.capacity:
            sliced = [b for b in buffers if b[0] is not b[1] and b[0] not in self.stored]
            if not sliced:
                raise self._too_large(op, made + self._held(buffers))
            _, largest = max(sliced, key=lambda buffer: value_bytes(buffer[0]))
            self.stored |= {whole for whole, part in buffers if part is largest}
        return len(self.stored) > before

    def _held(self, buffers: list[tuple[SSAValue, SSAValue]]) -> int:
        held = {part if whole in self.stored else whole for whole, part in buffers}
        return sum(map(value_bytes, held))

    def _too_large(self, op: Operation, used: int) -> InfeasibleError:
        return InfeasibleError(
            f"'{op.name}' uses {format_size(used)} ({used} bytes), but the chip holds "
            f"{format_size(self.capacity)} ({self.capacity} bytes)",
            location=source_location(op),
            hint="run select-splits and apply-splits first",
        )


def _buffers_read(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """Return the buffers that hold the operands of `op`, and the parts that it reads, each once."""
    found = {pair: None for value in op.operands for pair in buffers_of(value)}
    return [(whole, part) for whole, part in found if value_bytes(part)]


def moves(op: Operation) -> bool:
    """Return whether what `op` reads and makes goes through the memory of the chip."""
    return not is_addressing(op) and not is_declared(op) and not has_blocks(op)


def has_blocks(op: Operation) -> bool:
    """Return whether `op` is control flow."""
    return bool(op.regions) and not isinstance(op, GroupOp)
