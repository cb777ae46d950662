"""Which tensors of a program share a buffer, and for how long each buffer is needed.

Views, the values that an `scf.if` yields, and the values that a loop carries from one iteration
to the next are one storage; so are a result of the function and the kernel result that becomes
it. Where sharing is not possible, the terminator copies (see `copies`).
"""

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from braid.analysis.lanes import LaneOrder
from braid.analysis.liveness import Numbering
from braid.analysis.strided_storage import boxes_of, view_offset
from braid.analysis.tensor_storage import is_view
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.passes.memory.handed_values import forwarded, is_handed_on, stands_in, tensors
from braid.passes.memory.in_place import in_place_pairs
from braid.passes.memory.lane_lifetimes import accesses
from braid.passes.memory.memory_spaces import MAIN, MemorySpaces
from braid.passes.memory.storage import Storage, element_bytes, tensor_bytes


class StorageAssignment:
    """The storage of every tensor value of a function.

    A value that does not begin where its storage does is `offset` bytes into it.
    """

    def __init__(self, function: func.FuncOp, memories: MemorySpaces) -> None:
        self._memories = memories
        self.numbering = Numbering(function.body)
        self.order = LaneOrder(function)
        self.of: dict[SSAValue, Storage] = {}
        self.offset: dict[SSAValue, int] = {}
        for index, argument in enumerate(tensors(function.body.block.args)):
            self._new(argument, function, BufferAttr.input(index))
        self._visit(function.body.block)
        self._share_results(function)

    def memory_of(self, op: Operation) -> str:
        """The memory in which the results of `op` are."""
        return self._memories.of(op)

    def place_of(self, value: SSAValue) -> BufferAttr | None:
        """Where `value` begins; None for what is no tensor."""
        storage = self.of.get(value)
        if storage is None or storage.place is None:
            return None
        return storage.place.after(self.offset.get(value, 0))

    def copies(self, terminator: Operation, targets: Sequence[SSAValue]) -> list[tuple[int, bool]]:
        """Operands that `terminator` must copy to `targets`: (operand, needs a staging buffer).

        A staging buffer is needed where the operand is another target, which a copy before it
        may overwrite.
        """
        values = forwarded(terminator)
        destinations = [self.of.get(target) for target in targets]
        result: list[tuple[int, bool]] = []
        for index, (value, destination) in enumerate(zip(values, destinations, strict=True)):
            source = self.of.get(value)
            if source is not None and source is not destination:
                result.append((index, source in destinations))
        return result

    def _new(self, value: SSAValue, op: Operation, place: BufferAttr | None = None) -> Storage:
        number = self.numbering.definition(value)
        size, memory = tensor_bytes(value.type, op), self._memories.of(op)
        storage = Storage(size, number, number, element_bytes(value.type), memory, place)
        self._bind(value, storage)
        return storage

    def _bind(self, value: SSAValue, storage: Storage) -> None:
        storage.lower = min(storage.lower, self.numbering.definition(value))
        storage.upper = max(storage.upper, self.numbering.last_use(value))
        self.of[value] = storage

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case scf.IfOp():
                    self._visit_if(op)
                case scf.ForOp():
                    self._visit_for(op)
                case scf.WhileOp():
                    self._visit_while(op)
                case ConstantOp() | ParameterOp():
                    self._new(op.output, op, BufferAttr.of("weights", 0))
                case _ if is_view(op) or view_offset(op) is not None:
                    self._bind(op.results[0], self.of[op.operands[0]])
                    begin = self.offset.get(op.operands[0], 0) + (view_offset(op) or 0)
                    self.offset[op.results[0]] = begin
                    self._extend(op.operands[0], op.results[0])
                case func.CallOp() if not boxes_of(op):
                    self._visit_call(op)
                case _:
                    for result in tensors(op.results):
                        self._new(result, op)
                    for operand, begin in boxes_of(op).items():
                        self._move_into(op.operands[operand], op.results[0], begin)

    def _move_into(self, box: SSAValue, whole: SSAValue, begin: int) -> None:
        """Lets all that is in the storage of `box` lie in that of `whole`, from a byte on."""
        source, storage = self.of[box], self.of[whole]
        assert source.place is None and self.offset.get(box, 0) == 0
        storage.lower = min(storage.lower, source.lower)
        storage.upper = max(storage.upper, source.upper)
        for value in [v for v, s in self.of.items() if s is source]:
            self.of[value] = storage
            self.offset[value] = self.offset.get(value, 0) + begin

    def _visit_call(self, call: func.CallOp) -> None:
        """Results take the memory of operands that the kernel reads for the last time."""
        taken: set[Storage] = set()
        pairs = in_place_pairs(call)
        for number, result in enumerate(call.results):
            operands = (call.operands[o] for o, r in pairs if r == number)
            dying = (self.of[o] for o in operands if self._may_overwrite(call, o, result))
            storage = next((s for s in dying if s not in taken), None)
            if storage is None:
                self._new(result, call)
            else:
                taken.add(storage)
                self._bind(result, storage)

    def _may_overwrite(self, call: func.CallOp, operand: SSAValue, result: SSAValue) -> bool:
        """Whether `call` is the last to read the storage of `operand`, and reads it once.

        What a branch hands on is rather written where it is wanted, and so is what a loop carries.
        """
        storage = self.of[operand]
        dies = storage.place is None and storage.upper == self.numbering.span(call).start
        once = sum(self.of.get(value) is storage for value in call.operands) == 1
        same_memory = storage.memory == self._memories.of(call)
        dies = dies and self._others_are_done(storage, call)
        fits = same_memory and storage.size == tensor_bytes(result.type, call)
        fits = fits and self.offset.get(operand, 0) == 0
        return dies and once and fits and not is_handed_on(result)

    def _others_are_done(self, storage: Storage, call: func.CallOp) -> bool:
        """Whether all other ops that access `storage` have ended when `call` begins."""
        if self.order.lanes == 1:
            return True
        inside = self.order.in_body(call)
        others = accesses(self.order, (v for v, s in self.of.items() if s is storage)) - {inside}
        return all(self.order.before(other, inside) for other in others)

    def _extend(self, source: SSAValue, view: SSAValue) -> None:
        """A view that leaves through a terminator is read where the terminator stands."""
        storage = self.of[source]
        storage.upper = max(storage.upper, self.numbering.last_use(view))

    def _visit_if(self, op: scf.IfOp) -> None:
        for result in tensors(op.results):
            storage = self._new(result, op)
            storage.upper = max(storage.upper, self.numbering.span(op).end)
        for region in op.regions:
            if region.blocks:
                self._visit(region.block)
                terminator = region.block.last_op
                assert terminator is not None
                for value, result in zip(terminator.operands, op.results, strict=True):
                    if isinstance(result.type, TensorType):
                        self._share(value, self.of[result], region.block)

    def _visit_for(self, op: scf.ForOp) -> None:
        block = op.body.block
        self._carry(op, op.iter_args, block.args[1:], op.results)
        self._visit(block)
        self._share_carried(block, block.args[1:])

    def _visit_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        self._carry(op, op.arguments, before.args, ())
        self._visit(before)
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        for value, argument, result in zip(condition.args, after.args, op.results, strict=True):
            if not isinstance(value.type, TensorType):
                continue
            if value in before.args:
                self._bind(argument, self.of[value])
                self._bind(result, self.of[value])
            else:
                storage = self._new(result, op)
                storage.upper = max(storage.upper, self.numbering.span(op).end)
                self._bind(argument, storage)
                self._share(value, storage, before)
        self._visit(after)
        self._share_carried(after, before.args)

    def _carry(
        self,
        op: Operation,
        initial: Sequence[SSAValue],
        arguments: Sequence[SSAValue],
        results: Sequence[SSAValue],
    ) -> None:
        """One storage per carried tensor, live while the loop runs and its result is read."""
        assert op.parent is not None
        for index, argument in enumerate(arguments):
            if isinstance(argument.type, TensorType):
                storage = self._new(argument, op)
                storage.upper = max(storage.upper, self.numbering.span(op).end)
                if results:
                    self._bind(results[index], storage)
                if initial[index].has_one_use():
                    self._share(initial[index], storage, op.parent)

    def _share_carried(self, block: Block, arguments: Sequence[SSAValue]) -> None:
        """Kernels write the next iteration's value in place where the old one is not read."""
        terminator = block.last_op
        assert terminator is not None
        for value, argument in zip(terminator.operands, arguments, strict=True):
            if not isinstance(argument.type, TensorType) or not isinstance(value, OpResult):
                continue
            if self._reads_before(self.of[argument], value, block):
                self._share(value, self.of[argument], block)

    def _reads_before(self, storage: Storage, value: OpResult, block: Block) -> bool:
        """Whether the loop reads `storage` no more when it is written for `value`.

        The last read may be that of the kernel that makes `value`, if it may do so in place.
        """
        last = self._last_read(storage, block)
        first_write = self.of[value].lower
        op = value.op
        makes_first = first_write == self.numbering.span(op).start
        if last != first_write or not makes_first or not isinstance(op, func.CallOp):
            return last < first_write
        read = [i for i, operand in enumerate(op.operands) if self.of.get(operand) is storage]
        return len(read) == 1 and (read[0], value.index) in in_place_pairs(op)

    def _last_read(self, storage: Storage, block: Block) -> int:
        """The last number inside the loop of `block` at which `storage` is read."""
        loop = block.parent_op()
        assert loop is not None
        span = self.numbering.span(loop)
        reads = [
            self.numbering.span(use.operation).start
            for value, other in self.of.items()
            if other is storage
            for use in value.uses
            if span.start < self.numbering.span(use.operation).start <= span.end
        ]
        return max(reads, default=-1)

    def _share_results(self, function: func.FuncOp) -> None:
        terminator = function.body.block.last_op
        assert terminator is not None
        for index, value in enumerate(terminator.operands):
            storage = self.of[value]
            if storage.place is None and storage.memory == MAIN:
                storage.place = BufferAttr.output(index)

    def _share(self, value: SSAValue, storage: Storage, block: Block) -> None:
        """Makes `value` live in `storage` if it is computed in `block` and nowhere else bound."""
        source = self.of[value]
        written = [v for v, s in self.of.items() if s is source]
        movable = (
            source.place is None
            and source is not storage
            and source.memory == storage.memory
            and source.size == storage.size
            and all(isinstance(v, OpResult) and stands_in(v.op, block) for v in written)
        )
        if movable:
            for v in written:
                self._bind(v, storage)
