"""A memory plan, run on tags instead of data.

Each granule of each memory holds the number of what was written there last. Writing a tensor writes
its number to all of its bytes; reading one requires that all of them still hold it. So nothing has
to be known of lifetimes and aliases: whatever a plan lets share bytes is right where this finds no
fault. Both branches of an `if` are run, loops twice, and what differs afterwards holds nothing.
Concurrent work (launches, and calls on streams) is busy from its beginning until it is known to
have ended: no other op may write its operands, or touch its results.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    IntegerAttr,
    TensorType,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.storage.tensor_storage import is_view, storage_bytes
from braid.analysis.structure.functions import functions_beside
from braid.dialects.braid.attribute_names import (
    BOXES,
    BUFFERS,
    CARRIED_BUFFERS,
    SCRATCH_BUFFER,
    SCRATCH_BYTES,
    STAGING_BUFFERS,
    STRIDES,
    VIEW_OFFSET,
)
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.buffer import ALIGNMENT, BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.verification.claims import name_of
from braid.passes.verification.pending import Pending
from braid.passes.verification.planned_attributes import (
    buffers_of,
    element_bytes,
    overwritable,
    pairs_of,
    planned_strides,
)
from braid.passes.verification.side_by_side import SideBySide
from braid.passes.verification.tags import NOTHING, Memory, Place


class TaggedRun:
    """One function after `plan-memory`, run on tags."""

    def __init__(self, function: FuncOp, arenas: dict[str, int]) -> None:
        self._function = function
        self._functions = functions_beside(function)
        self._sizes = dict(arenas)
        last = function.body.block.last_op
        assert isinstance(last, ReturnOp)
        self._returned = last.operands
        for number, value in enumerate(self._returned):
            self._sizes[f"output:{number}"] = storage_bytes(value.type)
        self.used: dict[str, int] = dict.fromkeys(self._sizes, 0)
        self._number = itertools.count(1)

    def run(self) -> None:
        """Raise WrongClaimError where an op would not find what it reads.

        An output of a caller is aligned to its elements only, so that where its first aligned byte
        is differs: both extremes are run.
        """
        granule = self._granule()
        outputs = {f"output:{n}": element_bytes(v) for n, v in enumerate(self._returned)}
        for most in (0, ALIGNMENT):
            self._padding = {space: max(most - size, 0) for space, size in outputs.items()}
            self.memory = Memory(self._sizes, granule)
            self._tags: dict[SSAValue, int] = {}
            self._places: dict[SSAValue, BufferAttr] = {}
            self._made: dict[SSAValue, Place] = {}
            self._same: dict[int, int] = {}
            self._pending = Pending()
            self._streams = SideBySide(self._function)
            for number, argument in enumerate(self._function.body.block.args):
                self._places[argument] = BufferAttr.input(number)
            self._block(self._function.body.block)

    def _granule(self) -> int:
        """Return a number of bytes of which all that begins or ends in a memory is a multiple.

        Dense tensors may be taken as larger: what is after them begins at a multiple too.
        """
        found = ALIGNMENT
        for op in self._function.walk():
            is_strided = STRIDES in op.attributes
            for value in (*op.operands, *op.results):
                if is_strided and isinstance(value.type, TensorType):
                    found = gcd(found, element_bytes(value))
            for name in (BUFFERS, CARRIED_BUFFERS, STAGING_BUFFERS):
                for buffer in buffers_of(op, name):
                    found = gcd(found, buffer.offset.data if buffer is not None else 0)
        return gcd(found, *map(element_bytes, self._returned))

    # ---- what ops do ----

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._streams.enter(op)
            self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case scf.IfOp() | scf.IndexSwitchOp():
                self._branches(op)
            case scf.ForOp():
                self._for(op)
            case scf.WhileOp():
                self._while(op)
            case scf.YieldOp() | scf.ConditionOp():
                pass
            case ReturnOp():
                for number, value in enumerate(op.operands):
                    target = self._at(BufferAttr.output(number), storage_bytes(value.type))
                    self._copy(op, value, target)
            case ConstantOp() | ParameterOp():
                self._bind(op)
            case AwaitOp():
                self._pending.end(op.tokens)
                for value, result in zip(op.inputs, op.outputs, strict=True):
                    self._show(op, result, value)
            case _ if is_view(op) or VIEW_OFFSET in op.attributes:
                self._show(op, op.results[0], op.operands[0])
            case _:
                self._compute(op)

    def _show(self, op: Operation, result: SSAValue, value: SSAValue) -> None:
        """Check that `result` is the memory of `value`, from where the plan says on."""
        self._bind(op)
        begin = self._places[value]
        if isinstance(offset := op.attributes.get(VIEW_OFFSET), IntegerAttr):
            begin = begin.after(offset.value.data)
        elif value in self._made:  # maybe apart, in what joins or pads it
            self._made[result] = self._made[value]
        if self._places.setdefault(result, begin) != begin:
            raise WrongClaimError(f"{name_of(op)} shows {begin}, {self._places[result]} is planned")
        self._tags[result] = self._tag(value)

    def _compute(self, op: Operation) -> None:
        """Read the operands, and then write scratch memory and the results."""
        self._bind(op)
        boxes = pairs_of(op, BOXES)
        reads: list[tuple[int, Place]] = []
        kept: list[Place] = []
        for index, value in enumerate(op.operands):
            if isinstance(value.type, TensorType):
                place = self._place(value, planned_strides(op, index))
                if index in boxes:
                    place = self._made.get(value, place)  # Where it is is the op's own matter.
                    kept.append(place)
                else:
                    reads.append((index, place))
                self._read(op, place, self._tag(value))
        scratch = self._scratch(op)
        if scratch is not None:
            self._require_apart(op, scratch, reads, {})
            self._write(op, scratch, next(self._number))
        written = [scratch] if scratch is not None else []
        for index, result in enumerate(op.results):
            if not isinstance(result.type, TensorType):
                continue
            place = self._place(result, planned_strides(op, len(op.operands) + index))
            self._require_apart(op, place, reads, overwritable(self._kernel_of(op), index))
            if any(self.memory.overlap(place, other) for other in written):
                raise WrongClaimError(f"{name_of(op)} writes two things to one place")
            written.append(place)
            for number, begin in boxes.items():
                self._require_begin(op, op.operands[number], place.begin + begin)
            self._tags[result] = tag = next(self._number)
            # The bytes that lie in the result may be read as before.
            self._same.update((self._tag(op.operands[number]), tag) for number in boxes)
            self._write(op, place, tag, kept)
            self._made[result] = place
        if isinstance(op, LaunchOp):
            self._pending.begin(op, [place for _, place in reads], written)

    def _require_apart(
        self,
        op: Operation,
        place: Place,
        reads: Sequence[tuple[int, Place]],
        over: dict[int, bool],
    ) -> None:
        """Check that `op` writes no memory that it reads, unless its kernel permits that.

        `over` are the operands that it may write over, if both begin at the same byte: all of
        such an operand, or (True) also one that is smaller than the result.
        """
        for number, read in reads:
            may = number in over and place.begins_with(read)
            if may and (place.size == read.size or (over[number] and read.size < place.size)):
                continue
            if self.memory.overlap(place, read):
                raise WrongClaimError(f"{name_of(op)} writes over operand {number} as it reads it")

    def _require_begin(self, op: Operation, value: SSAValue, begin: int) -> None:
        """Check that an operand within a result begins where the op says."""
        place = self._dense(value)
        if place.begin != begin:
            raise WrongClaimError(
                f"{name_of(op)} has an operand at {place.begin} of {place.space}, not at {begin}"
            )

    def _scratch(self, op: Operation) -> Place | None:
        buffer = op.attributes.get(SCRATCH_BUFFER)
        kernel = self._kernel_of(op)
        size = None if kernel is None else kernel.attributes.get(SCRATCH_BYTES)
        count = size.value.data if isinstance(size, IntegerAttr) else 0
        if count and not isinstance(buffer, BufferAttr):
            raise WrongClaimError(f"{name_of(op)} has no buffer for {count} bytes of scratch")
        return self._at(buffer, count) if count and isinstance(buffer, BufferAttr) else None

    def _kernel_of(self, op: Operation) -> Operation | None:
        called = op.callee.root_reference.data if isinstance(op, CallOp) else ""
        return self._functions.get(called)

    # ---- control flow ----

    def _branches(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        self._bind(op)
        tags = [next(self._number) for _ in op.results]
        before, ends = self.memory, list[Memory]()
        for region in op.regions:
            self.memory = before.copy()
            for block in region.blocks:
                self._block(block)
                self._hand_on(block, op.results, tags)
            ends.append(self.memory)
        self._join(ends)

    def _for(self, op: scf.ForOp) -> None:
        self._bind(op)
        body = op.body.block
        self._share(body.args[1:], op.results)
        tags = self._enter(op, op.iter_args, op.results)
        ends = [self.memory.copy()]
        for _ in range(2):
            self._tags.update(zip(body.args[1:], tags, strict=True))
            self._block(body)
            self._hand_on(body, op.results, tags)
            ends.append(self.memory.copy())
        self._join(ends)

    def _while(self, op: scf.WhileOp) -> None:
        self._bind(op)
        before, after = op.before_region.block, op.after_region.block
        carried = zip(before.args, buffers_of(op, CARRIED_BUFFERS), strict=False)
        self._places.update((value, place) for value, place in carried if place is not None)
        self._share(after.args, op.results)
        tags = self._enter(op, op.arguments, before.args)
        handed = [next(self._number) for _ in op.results]
        ends: list[Memory] = []
        for _ in range(3):
            self._tags.update(zip(before.args, tags, strict=True))
            self._block(before)
            self._hand_on(before, op.results, handed)
            ends.append(self.memory.copy())
            self._tags.update(zip(after.args, handed, strict=True))
            self._block(after)
            self._hand_on(after, before.args, tags)
        self._join(ends)

    def _share(self, arguments: Sequence[SSAValue], results: Sequence[SSAValue]) -> None:
        """Place the arguments of a loop's region where its results are."""
        for argument, result in zip(arguments, results, strict=True):
            if isinstance(result.type, TensorType):
                self._places[argument] = self._places[result]

    def _enter(
        self, op: Operation, initial: Sequence[SSAValue], slots: Sequence[SSAValue]
    ) -> list[int]:
        """Copy what a loop begins with to where it is carried, and return the tags there."""
        tags = [next(self._number) for _ in slots]
        for value, slot, tag in zip(initial, slots, tags, strict=True):
            if isinstance(value.type, TensorType):
                place = self._dense(slot)
                self._copy(op, value, place)
                self._write(op, place, tag)
                self._tags[slot] = tag
        return tags

    def _hand_on(self, block: Block, targets: Sequence[SSAValue], tags: Sequence[int]) -> None:
        """Copy what the terminator of `block` hands on; what is staged is copied first."""
        end = block.last_op
        assert end is not None
        values = list(end.operands)[isinstance(end, scf.ConditionOp) :]
        staging = buffers_of(end, STAGING_BUFFERS) or [None] * len(values)
        copies: list[tuple[Place, int, Place, int]] = []
        for value, staged, target, tag in zip(values, staging, targets, tags, strict=True):
            if not isinstance(value.type, TensorType):
                continue
            source, own = self._dense(value), self._tag(value)
            if staged is not None:
                source = self._at(staged, source.size)
                self._copy(end, value, source)
            copies.append((source, own, self._dense(target), tag))
            self._tags[target] = tag
        for source, own, target, _ in copies:
            self._read(end, source, own)
            if not source.begins_with(target):
                self._write(end, target, own)
        # All copies are done before anything is read again.
        for _, own, target, _ in copies:
            self._read(end, target, own)
        for _, _, target, tag in copies:
            self._write(end, target, tag)

    def _join(self, ends: Sequence[Memory]) -> None:
        self.memory = ends[0]
        for other in ends[1:]:
            self.memory.meet(other)

    # ---- where things are ----

    def _bind(self, op: Operation) -> None:
        for result, place in zip(op.results, buffers_of(op, BUFFERS), strict=False):
            if place is not None:
                self._places[result] = place

    def _tag(self, value: SSAValue) -> int:
        tag = self._tags.get(value, NOTHING)
        while tag in self._same:
            tag = self._same[tag]
        return tag

    def _dense(self, value: SSAValue) -> Place:
        return self._place(value, None)

    def _place(self, value: SSAValue, strides: tuple[int, ...] | None) -> Place:
        if value not in self._places:
            raise WrongClaimError(f"a value of type {value.type} has no buffer")
        if strides is None:
            return self._at(self._places[value], storage_bytes(value.type))
        size = element_bytes(value)
        shape = layout_of(value.type).storage_shape(shape_of(value))
        steps = tuple(size * stride for stride in strides)
        reach = size + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
        return replace(self._at(self._places[value], reach), shape=shape, strides=steps)

    def _at(self, buffer: BufferAttr, size: int) -> Place:
        space = buffer.space.data
        begin = buffer.offset.data
        if space.endswith(":aligned"):
            space = space.removesuffix(":aligned")
            begin += self._padding[space]
        return Place(space, begin, size)

    def _copy(self, op: Operation, value: SSAValue, target: Place) -> None:
        source, tag = self._dense(value), self._tag(value)
        self._read(op, source, tag)
        if not source.begins_with(target):
            self._write(op, target, tag)

    def _read(self, op: Operation, place: Place, tag: int) -> None:
        """Check that inputs and weights, which are never written, hold the right tags."""
        if place.space not in self.memory.tags:
            return
        self._require_capacity(op, place)
        self._pending.require_no_writer(op, place, self.memory)
        self._streams.read(place, self.memory)
        if not (self.memory.cells(place) == tag).all():
            raise WrongClaimError(
                f"{name_of(op)} reads {place.size} bytes at {place.begin} of {place.space}, where "
                "something else was written since"
            )

    def _write(self, op: Operation, place: Place, tag: int, kept: Sequence[Place] = ()) -> None:
        if place.space not in self.memory.tags:
            raise WrongClaimError(f"{name_of(op)} writes to {place.space}")
        self._require_capacity(op, place)
        self._pending.require_unused(op, place, self.memory)
        self._streams.write(place, self.memory, kept)
        self.memory.cells(place)[...] = tag

    def _require_capacity(self, op: Operation, place: Place) -> None:
        if place.end > self._sizes[place.space]:
            raise WrongClaimError(
                f"{name_of(op)} has a tensor up to byte {place.end} of {place.space}, which has "
                f"{self._sizes[place.space]}"
            )
        self.used[place.space] = max(self.used[place.space], place.end)
