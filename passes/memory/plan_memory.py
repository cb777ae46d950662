"""`plan-memory`: an offset in one arena for every tensor of a program."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from braid.analysis.remarks import emit_remark
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.passes.memory.storage import Storage, StorageAssignment
from braid.solvers.packing import Buffer, pack

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""

BUFFERS = "braid.buffers"
CARRIED = "braid.carried_buffers"
STAGING = "braid.staging_buffers"
SCRATCH = "braid.scratch_buffer"
SCRATCH_BYTES = "braid.scratch_bytes"
ARENA_BYTES = "braid.arena_bytes"
WEIGHTS_BYTES = "braid.weights_bytes"


class Plan:
    """Storages of one function, and after `place` their buffers."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.values = StorageAssignment(function)
        self.scratch: dict[Operation, Storage] = {}
        self.staging: dict[Operation, dict[int, Storage]] = {}
        for op in function.walk():
            if isinstance(op, func.CallOp):
                self._plan_scratch(op)
            elif isinstance(op, scf.YieldOp | scf.ConditionOp):
                self._plan_staging(op)

    def storages(self) -> list[Storage]:
        """Every storage once, in order of appearance."""
        staging = (storage for entry in self.staging.values() for storage in entry.values())
        return list(dict.fromkeys((*self.values.of.values(), *self.scratch.values(), *staging)))

    def _plan_scratch(self, call: func.CallOp) -> None:
        callee = SymbolTable.lookup_symbol(call, call.callee)
        size = callee.attributes.get(SCRATCH_BYTES) if callee is not None else None
        if isinstance(size, IntegerAttr) and size.value.data > 0:
            number = self.values.numbering.span(call).start
            self.scratch[call] = Storage(size.value.data, number, number)

    def _plan_staging(self, terminator: Operation) -> None:
        number = self.values.numbering.span(terminator).start
        for index, staged in self.values.copies(terminator, targets_of(terminator)):
            if staged:
                size = self.values.of[forwarded(terminator)[index]].size
                entry = self.staging.setdefault(terminator, {})
                entry[index] = Storage(size, number, number)


def forwarded(terminator: Operation) -> Sequence[SSAValue]:
    """The values that a terminator hands on, without a loop's condition."""
    return terminator.args if isinstance(terminator, scf.ConditionOp) else terminator.operands


def targets_of(terminator: Operation) -> Sequence[SSAValue]:
    """The values that become what `terminator` hands on, one for each."""
    parent = terminator.parent_op()
    if isinstance(parent, scf.ForOp):
        return parent.body.block.args[1:]
    if isinstance(parent, scf.WhileOp) and isinstance(terminator, scf.YieldOp):
        return parent.before_region.block.args
    return parent.results if parent is not None else ()


def place_weights(storages: Sequence[tuple[SSAValue, Storage]]) -> int:
    """Gives parameters and constants offsets, each key once; returns the bytes of all."""
    offsets: dict[Attribute, BufferAttr] = {}
    end = 0
    for value, storage in storages:
        owner = value.owner
        key = owner.key if isinstance(owner, ParameterOp) else None
        key = owner.value if isinstance(owner, ConstantOp) else key
        if key is None:
            continue
        if key not in offsets:
            offsets[key] = BufferAttr.of("weights", end)
            end += -(-storage.size // ALIGNMENT) * ALIGNMENT
        storage.place = offsets[key]
    return end


def place_in_arena(storages: Sequence[Storage], time_limit: float) -> tuple[int, int]:
    """Packs the storages without a place; returns the arena's bytes and their lower bound."""
    movable = [storage for storage in storages if storage.place is None]
    buffers = [Buffer(s.lower, s.upper + 1, s.size, ALIGNMENT) for s in movable]
    packing = pack(buffers, time_limit=time_limit)
    for storage, offset in zip(movable, packing.offsets, strict=True):
        storage.place = BufferAttr.of("arena", offset)
    return packing.arena_size, packing.lower_bound


def record(plan: Plan) -> None:
    """Writes the buffers as attributes of the ops."""

    def buffers(values: Sequence[SSAValue]) -> ArrayAttr[Attribute]:
        storages = [plan.values.of.get(value) for value in values]
        return ArrayAttr([s.place if s and s.place else UnitAttr() for s in storages])

    for op in plan.function.walk():
        if any(isinstance(result.type, TensorType) for result in op.results):
            op.attributes[BUFFERS] = buffers(op.results)
        if isinstance(op, scf.WhileOp):
            op.attributes[CARRIED] = buffers(op.before_region.block.args)
        if op in plan.scratch and (place := plan.scratch[op].place) is not None:
            op.attributes[SCRATCH] = place
        if op in plan.staging:
            staged = plan.staging[op]
            places = [staged[i].place if i in staged else None for i in range(len(forwarded(op)))]
            op.attributes[STAGING] = ArrayAttr([place or UnitAttr() for place in places])


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Gives every tensor of a public function a buffer and writes it as an attribute.

    In: functions after `outline-kernels`, kernels with their scratch in `braid.scratch_bytes`.
    Out: `braid.buffers` on every op with tensor results (one `#braid.buffer` each), likewise
    `braid.carried_buffers` on `scf.while`, `braid.scratch_buffer` on calls,
    `braid.staging_buffers` on terminators whose copies would overwrite each other, and
    `braid.arena_bytes` and `braid.weights_bytes` on the function.
    Raises UnsupportedError for open dims.

    ```mlir
    %y = func.call @kernel_0(%x) {braid.buffers = [#braid.buffer<"arena", 0>]}
        : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "plan-memory"

    time_limit: float = 5.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plans each public function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.sym_visibility is None:
                self._plan(function)

    def _plan(self, function: func.FuncOp) -> None:
        plan = Plan(function)
        weights = place_weights(list(plan.values.of.items()))
        arena, bound = place_in_arena(plan.storages(), self.time_limit)
        record(plan)
        function.attributes[ARENA_BYTES] = IntegerAttr(arena, i64)
        function.attributes[WEIGHTS_BYTES] = IntegerAttr(weights, i64)
        emit_remark(
            function,
            self.name,
            f"arena of {arena} bytes, lower bound {bound}",
            arena_bytes=arena,
            lower_bound=bound,
        )
