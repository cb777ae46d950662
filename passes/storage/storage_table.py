"""Values of a function and the storages that they are in, as these are found to be shared."""

from collections import defaultdict
from collections.abc import Sequence

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from braid.analysis.execution.inter_op_streams import InterOpOrder
from braid.analysis.storage.liveness import Numbering
from braid.analysis.structure.functions import functions_beside
from braid.analysis.structure.handed_values import forwarded, stands_in
from braid.dialects.braid.buffer import BufferAttr
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.storage import Storage, element_bytes, tensor_bytes


class StorageTable:
    """The storage of every tensor value of a function; empty at first.

    A value that does not begin where its storage does is `offset` bytes into it.
    """

    def __init__(self, function: FuncOp, memories: MemorySpaces) -> None:
        self._memories = memories
        self._functions = functions_beside(function)
        self.numbering = Numbering(function.body)
        self.order = InterOpOrder(function)
        self.of: dict[SSAValue, Storage] = {}
        self.offset: dict[SSAValue, int] = {}
        self._held: dict[Storage, dict[SSAValue, None]] = defaultdict(dict)  # the inverse of `of`

    def memory_of(self, op: Operation) -> str:
        """Return the memory in which the results of `op` are."""
        return self._memories.of(op)

    def kernel_of(self, call: CallOp) -> FuncOp | None:
        """Return the callee of `call`, if it is in the module."""
        return self._functions.get(call.callee.root_reference.data)

    def place_of(self, value: SSAValue) -> BufferAttr | None:
        """Return where `value` begins; None for a value that is not a tensor."""
        storage = self.of.get(value)
        if storage is None or storage.place is None:
            return None
        return storage.place.after(self.offset.get(value, 0))

    def copies(self, terminator: Operation, targets: Sequence[SSAValue]) -> list[tuple[int, bool]]:
        """Return the operands that `terminator` must copy to `targets`: (operand, needs a staging
        buffer).

        A staging buffer is needed if the operand is another target, which an earlier copy may
        overwrite.
        """
        values = forwarded(terminator)
        destinations = [self.of.get(target) for target in targets]
        result: list[tuple[int, bool]] = []
        for index, (value, destination) in enumerate(zip(values, destinations, strict=True)):
            source = self.of.get(value)
            if source is not None and source is not destination:
                result.append((index, source in destinations))
        return result

    def new(self, value: SSAValue, op: Operation, place: BufferAttr | None = None) -> Storage:
        """Give `value`, a result or an argument of `op`, a storage of its own."""
        number = self.numbering.definition(value)
        size, memory = tensor_bytes(value.type, op), self._memories.of(op)
        storage = Storage(size, number, number, element_bytes(value.type), memory, place)
        self.bind(value, storage)
        return storage

    def bind(self, value: SSAValue, storage: Storage) -> None:
        """Put `value` into `storage`, which is live for it as well."""
        storage.lower = min(storage.lower, self.numbering.definition(value))
        storage.upper = max(storage.upper, self.numbering.last_use(value))
        self._put(value, storage)

    def _put(self, value: SSAValue, storage: Storage) -> None:
        """Note that `value` is in `storage`, no longer in another one."""
        if (former := self.of.get(value)) is not None:
            del self._held[former][value]
        self.of[value] = storage
        self._held[storage][value] = None

    def view(self, source: SSAValue, view: SSAValue, begin: int) -> None:
        """Let `view` be the memory of `source` from byte `begin` of that on.

        A view that leaves through a terminator is read where the terminator stands.
        """
        storage = self.of[source]
        self.bind(view, storage)
        self.offset[view] = self.offset.get(source, 0) + begin

    def values_in(self, storage: Storage) -> list[SSAValue]:
        """Return the values that are in `storage`."""
        return list(self._held[storage])

    def move_into(self, box: SSAValue, whole: SSAValue, begin: int) -> None:
        """Place the whole content of the storage of `box` in that of `whole`, from a byte on."""
        source, storage = self.of[box], self.of[whole]
        assert source.place is None and self.offset.get(box, 0) == 0
        storage.lower = min(storage.lower, source.lower)
        storage.upper = max(storage.upper, source.upper)
        for value in self.values_in(source):
            self._put(value, storage)
            self.offset[value] = self.offset.get(value, 0) + begin

    def share(self, value: SSAValue, storage: Storage, block: Block) -> None:
        """Make `value` live in `storage` if it is computed in `block` and nowhere else bound."""
        source = self.of[value]
        written = self.values_in(source)
        movable = (
            source.place is None
            and source is not storage
            and source.memory == storage.memory
            and source.size == storage.size
            and all(isinstance(v, OpResult) and stands_in(v.op, block) for v in written)
        )
        if movable:
            for v in written:
                self.bind(v, storage)
