"""`plan-memory`: an offset in one arena for every tensor of a program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.storage.stored_weights import narrow_parameters
from braid.analysis.structure.functions import functions_beside
from braid.analysis.structure.handed_values import forwarded
from braid.dialects.braid.attribute_names import (
    ARENA_BOUND,
    ARENA_BYTES,
    ARENAS,
    BRANCH_SIZE_CHECKS,
    BUFFERS,
    CARRIED_BUFFERS,
    EXPANDED_BYTES,
    OPEN_BUFFERS,
    OPEN_LIFETIMES,
    SCRATCH_BUFFER,
    SCRATCH_BYTES,
    STAGING_BUFFERS,
    WEIGHTS_BYTES,
    WEIGHTS_OFFSET,
)
from braid.dialects.braid.buffer import ALIGNMENT, BufferAttr
from braid.dialects.braid.clusters import device_name, replicas_of
from braid.dialects.braid.sizes import SizesAttr, extent_attribute, is_open
from braid.dialects.braid.variants import (
    device_functions,
    program_functions,
    public_functions,
)
from braid.passes.storage.inter_op_lifetimes import accesses, write_moments
from braid.passes.storage.memory_spaces import MAIN, MemorySpaces
from braid.passes.storage.overlaps import link_overlaps
from braid.passes.storage.placement import (
    Arena,
    WeightsSection,
    place_in_arenas,
    place_in_outputs,
)
from braid.passes.storage.storage import Storage
from braid.passes.storage.storage_assignment import StorageAssignment
from braid.support.errors import InfeasibleError, UnsupportedError
from braid.support.option_names import option_text
from braid.support.sizes.operators import maximum
from braid.targets.machines.resolve import target_of

SECTION_ALIGNMENT = 4096
"""The alignment of a device's weights: they are used or uploaded where they are mapped."""


class Plan:
    """Storages of one function, and after `place` their buffers."""

    def __init__(self, function: func.FuncOp, memories: MemorySpaces) -> None:
        self.function = function
        self.values = StorageAssignment(function, memories)
        self.scratch: dict[Operation, Storage] = {}
        self.staging: dict[Operation, dict[int, Storage]] = {}
        functions = functions_beside(function)
        for op in function.walk():
            if isinstance(op, func.CallOp):
                self._plan_scratch(op, functions.get(op.callee.string_value()))
            elif isinstance(op, scf.YieldOp | scf.ConditionOp):
                self._plan_staging(op)
        link_overlaps(function, self.values)
        if self.values.order.streams > 1:
            write_moments(self.values.order, self._accesses())

    def storages(self) -> list[Storage]:
        """Return every storage once, in order of appearance."""
        staging = (storage for entry in self.staging.values() for storage in entry.values())
        return list(dict.fromkeys((*self.values.of.values(), *self.scratch.values(), *staging)))

    def _accesses(self) -> dict[Storage, set[Operation]]:
        """Return the ops of the function's body that access each storage."""
        order = self.values.order
        values: dict[Storage, list[SSAValue]] = {}
        for value, storage in self.values.of.items():
            values.setdefault(storage, []).append(value)
        found = {storage: accesses(order, own) for storage, own in values.items()}
        found |= {storage: {order.in_body(call)} for call, storage in self.scratch.items()}
        for terminator, staged in self.staging.items():
            found |= {storage: {order.in_body(terminator)} for storage in staged.values()}
        return found

    def _plan_scratch(self, call: func.CallOp, callee: func.FuncOp | None) -> None:
        size = None if callee is None else extent_attribute(callee, SCRATCH_BYTES)
        if size is not None and size != 0:
            number = self.values.numbering.span(call).start
            memory = self.values.memory_of(call)
            scratch = Storage(size, number, number, ALIGNMENT, memory)
            self.scratch[call] = scratch

    def _plan_staging(self, terminator: Operation) -> None:
        number = self.values.numbering.span(terminator).start
        for index, staged in self.values.copies(terminator, targets_of(terminator)):
            if staged:
                source = self.values.of[forwarded(terminator)[index]]
                entry = self.staging.setdefault(terminator, {})
                staging = replace(source, lower=number, upper=number, place=None)
                entry[index] = staging


def targets_of(terminator: Operation) -> Sequence[SSAValue]:
    """Return the values that `terminator` forwards, and the values that they become."""
    parent = terminator.parent_op()
    if isinstance(parent, scf.ForOp):
        return parent.body.block.args[1:]
    if isinstance(parent, scf.WhileOp) and isinstance(terminator, scf.YieldOp):
        return parent.before_region.block.args
    return parent.results if parent is not None else ()


def record(plan: Plan) -> None:
    """Write the buffers as attributes of the ops."""

    def buffers(values: Sequence[SSAValue]) -> ArrayAttr[Attribute]:
        places = [plan.values.place_of(value) for value in values]
        return ArrayAttr([place or UnitAttr() for place in places])

    for op in plan.function.walk():
        if any(isinstance(result.type, TensorType) for result in op.results):
            op.attributes[BUFFERS] = buffers(op.results)
        if isinstance(op, scf.WhileOp):
            op.attributes[CARRIED_BUFFERS] = buffers(op.before_region.block.args)
        if op in plan.scratch and (place := plan.scratch[op].place) is not None:
            op.attributes[SCRATCH_BUFFER] = place
        if op in plan.staging:
            staged = plan.staging[op]
            places = [staged[i].place if i in staged else None for i in range(len(forwarded(op)))]
            op.attributes[STAGING_BUFFERS] = ArrayAttr([place or UnitAttr() for place in places])


def record_sections(
    module: ModuleOp,
    sections: Mapping[str | None, WeightsSection],
    homes: Mapping[str | None, str | None],
) -> None:
    """Write where the weights of each device are, the model's own first, and their bytes."""
    begins: dict[str | None, int] = {}
    size = 0
    for device, section in sections.items():
        begins[device] = -(-size // SECTION_ALIGNMENT) * SECTION_ALIGNMENT
        size = begins[device] + section.size
    for function in public_functions(module):
        function.attributes[WEIGHTS_BYTES] = IntegerAttr(size, i64)
        if (expanded := sections[None].expanded_size) > 0:
            function.attributes[EXPANDED_BYTES] = IntegerAttr(expanded, i64)
    for function in device_functions(module):
        device = device_name(function)
        device = homes.get(device, device)
        function.attributes[WEIGHTS_OFFSET] = IntegerAttr(begins[device], i64)
        function.attributes[WEIGHTS_BYTES] = IntegerAttr(sections[device].size, i64)


def _homes(module: ModuleOp) -> dict[str | None, str | None]:
    """Map a device that takes turns with others to the device that holds all their weights."""
    homes: dict[str | None, str | None] = {}
    for function in device_functions(module):
        own = device_name(function)
        for name in replicas_of(function):
            home, other = homes.setdefault(own, own), homes.setdefault(name, name)
            homes |= dict.fromkeys([each for each in homes if homes[each] == other], home)
    return homes


def _leave_open(function: func.FuncOp, storages: Sequence[Storage]) -> None:
    """Give the buffers of the arena numbers, and record what placing them in each run needs."""
    movable = [storage for storage in storages if storage.place is None]
    for number, storage in enumerate(movable):
        if storage.memory != MAIN:
            raise UnsupportedError(
                f"a tensor in memory '{storage.memory}' has open dims, which only the memory of "
                "the host can hold",
                location=source_location(function),
                hint=f"give the sizes of the inputs, such as {option_text('dims', {'batch': 4})}",
            )
        storage.place = BufferAttr.open(number)
    lifetimes = [bound for storage in movable for bound in (storage.lower, storage.upper)]
    sizes = [storage.size for storage in movable]
    if any(BRANCH_SIZE_CHECKS in op.attributes for op in function.walk()):
        # Sizes that do not fit a branch, which is not taken then, may make its buffers negative.
        sizes = [maximum(size, 0) for size in sizes]
    function.attributes[OPEN_BUFFERS] = SizesAttr.of(sizes)
    function.attributes[OPEN_LIFETIMES] = DenseArrayBase.from_list(i64, lifetimes)
    for name in (ARENA_BYTES, ARENA_BOUND):
        function.attributes[name] = IntegerAttr(0, i64)


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Gives every tensor of a program a buffer and writes it as an attribute.

    In: functions after `outline-kernels`, kernels with their scratch in `braid.scratch_bytes`. Out:
    `braid.buffers` on every op with tensor results (one `#braid.buffer` each), likewise
    `braid.carried_buffers` on `scf.while`, `braid.scratch_buffer` on calls, `braid.staging_buffers`
    on terminators whose copies would overwrite each other, and `braid.arena_bytes`, the bound of
    that, and `braid.weights_bytes` on the function, `braid.arenas` for the arenas of the target's
    other memories. Weights of the host that `expansion_of` knows have places in the space
    `expanded`, of `braid.expanded_bytes`, and `braid.stored_buffer` in the weights, perhaps of a
    `braid.stored_type`. Functions on one device, or on devices that take turns, share their
    weights; weights of devices follow the model's, each at `braid.weights_offset`. A tensor may
    live in the memory of an output until that is written. In a function with streams, tensors share
    bytes only if all kernels that access the one end before any kernel that accesses the other
    begins, whichever stream is faster. Where sizes are open, buffers of the arena are placed for
    each run: `braid.open_buffers` has their bytes, `braid.open_lifetimes` when they are needed.
    Raises UnsupportedError for open dims without sizes, InfeasibleError where the tensors in
    another memory are more than it holds.

    ```mlir
    %y = func.call @kernel_0(%x) {braid.buffers = [#braid.buffer<"arena", 0>]}
        : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "plan-memory"

    target: str | None = None
    time_limit: float = 5.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan each function that is a program."""
        self.plan(op, MemorySpaces(target_of(op, self.target)))

    def plan(self, module: ModuleOp, memories: MemorySpaces) -> None:
        """Plan each function that is a program with `memories`, whatever the target."""
        sections: dict[str | None, WeightsSection] = {
            None: WeightsSection(narrow_parameters(module))
        }
        homes = _homes(module)
        for function in program_functions(module):
            device = device_name(function)
            section = sections.setdefault(homes.get(device, device), WeightsSection())
            self._plan(function, section, memories)
        record_sections(module, sections, homes)

    def _plan(self, function: func.FuncOp, weights: WeightsSection, memories: MemorySpaces) -> None:
        plan = Plan(function, memories)
        weights.place(list(plan.values.of.items()))
        storages = plan.storages()
        if is_open(function):
            _leave_open(function, storages)
            record(plan)
            return
        place_in_outputs(storages)
        arenas = place_in_arenas(storages, self.time_limit)
        record(plan)
        sizes = {arena.memory: IntegerAttr(arena.size, i64) for arena in arenas}
        function.attributes[ARENA_BYTES] = sizes.pop(MAIN)
        function.attributes[ARENA_BOUND] = IntegerAttr(arenas[0].lower_bound, i64)
        if sizes:
            function.attributes[ARENAS] = DictionaryAttr(sizes)
        for arena in arenas:
            self._report(function, arena, memories)

    def _report(self, function: func.FuncOp, arena: Arena, memories: MemorySpaces) -> None:
        of_memory = f" in {arena.memory}" if arena.memory else ""
        emit_remark(
            function,
            self.name,
            f"arena of {arena.size} bytes{of_memory}, lower bound {arena.lower_bound}, "
            f"gap {arena.gap:.3%}",
            memory=arena.memory,
            arena_bytes=arena.size,
            cost=arena.size,
            lower_bound=arena.lower_bound,
            gap=arena.gap,
        )
        available = memories.bytes.get(arena.memory, arena.size)
        if arena.size > available:
            raise InfeasibleError(
                f"the tensors in memory '{arena.memory}' take {arena.size} bytes at once, it has "
                f"{available}",
                location=source_location(function),
                hint="split the ops that need them, or keep fewer of them there",
            )
