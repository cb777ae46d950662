"""A planned function as a program: kernel calls and control flow on raw pointers."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, func, llvm, scf, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    ModuleOp,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.lanes import LaneOrder, lane_count
from braid.analysis.locations import source_location
from braid.analysis.strided_storage import is_only_storage
from braid.analysis.tensor_storage import is_view, storage_bytes
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.dtypes import bytes_of
from braid.errors import BraidError, UnsupportedError
from braid.lowering.cpu.program.environment import Buffers, Environment
from braid.lowering.cpu.program.kernel_grids import barriers_of, grids_of, workers_of
from braid.lowering.cpu.program.kernels import KernelCalls
from braid.lowering.cpu.program.lane_sections import LaneCall, LaneSections
from braid.lowering.cpu.program.pointers import POINTER, PointerBuilder, external_function
from braid.lowering.cpu.program.profile import ProfileCounters
from braid.passes.memory.handed_values import forwarded
from braid.passes.memory.plan_memory import BUFFERS, CARRIED, SCRATCH, STAGING

AnyTensor = TensorType[Attribute]

ENTRY = "braid_run"


class ProgramEmitter:
    """Emits one planned function. `tensors` are addresses, `scalars` are values."""

    def __init__(
        self, source: ModuleOp, function: func.FuncOp, symbol: str, counters: dict[str, int] | None
    ) -> None:
        self.module = ModuleOp([external_function("memcpy", [POINTER, POINTER, i64], POINTER)])
        self._grids = grids_of(source)
        self._workers = workers_of(source)
        self._barriers = barriers_of(source)
        entry = Block(arg_types=[POINTER] * 5)
        environment = Environment(*entry.args)
        prologue, body = Block(), Block()
        self._tensors: dict[SSAValue, SSAValue] = {}
        self._scalars: dict[SSAValue, SSAValue] = {}
        at_entry = PointerBuilder(InsertPoint.at_end(prologue))
        self._buffers = Buffers(environment, at_entry)
        self._kernels = KernelCalls(self.module, environment, at_entry)
        self._order = LaneOrder(function)
        self._lanes = LaneSections(
            self.module, symbol, self._order, environment, self._kernels, at_entry
        )
        numbers = {} if counters is None else counters
        self._counters = ProfileCounters(environment, numbers, enabled=counters is not None)
        results = len(function.function_type.outputs)
        self._outputs = [BufferAttr.output(index) for index in range(results)]
        for index, argument in enumerate(function.body.block.args):
            self._tensors[argument] = self._buffers.address(BufferAttr.input(index))
        self._body(function.body.block, PointerBuilder(InsertPoint.at_end(body)))
        _move_ops(prologue, entry)
        _move_ops(body, entry)
        signature = llvm.LLVMFunctionType([POINTER] * 5, i32)
        linkage = llvm.LinkageAttr("external")
        self.module.body.block.add_op(llvm.FuncOp(symbol, signature, linkage, body=Region(entry)))

    def _body(self, block: Block, builder: PointerBuilder) -> None:
        """Emits the body of the function: calls on lanes in sections, the rest as it stands."""
        section: list[func.CallOp] = []
        for op in block.ops:
            step = self._order.steps.get(op)
            if step is None:
                self._operation(op, builder)
            elif step.lane is None:
                self._section(section, builder)
                section = []
                self._operation(op, builder)
            else:
                assert isinstance(op, func.CallOp)
                self._bind_results(op)
                section.append(op)

    def _section(self, calls: Sequence[func.CallOp], builder: PointerBuilder) -> None:
        """Runs `calls` on their lanes, or as they stand where there is nothing beside them."""
        steps = [self._order.steps[call] for call in calls]
        if len({step.lane for step in steps}) <= 1:
            for call in calls:
                self._call(call, builder)
            return
        self._lanes.emit([self._lane_call(call) for call in calls], builder)

    def _lane_call(self, op: func.CallOp) -> LaneCall:
        symbol = op.callee.root_reference.data
        step, grid = self._order.steps[op], self._grids.get(symbol, 1)
        barriers = self._barriers.get(symbol, ())
        return LaneCall(step, symbol, tuple(self._arguments(op)), grid, barriers)

    def _operation(self, op: Operation, builder: PointerBuilder) -> None:
        match op:
            case ConstantOp() | ParameterOp():
                self._bind_results(op)
            case func.CallOp():
                self._call(op, builder)
            case func.ReturnOp():
                self._return(op, builder)
            case scf.IfOp():
                self._if(op, builder)
            case scf.ForOp():
                self._for(op, builder)
            case scf.WhileOp():
                self._while(op, builder)
            case tensor.ExtractOp():
                pointer = self._element(op.tensor, op.indices, builder)
                self._scalars[op.result] = self._load(pointer, op.result.type, builder)
            case tensor.FromElementsOp():
                self._from_elements(op, builder)
            case _ if is_only_storage(op):
                self._bind_results(op)
            case _ if is_view(op):
                self._tensors[op.results[0]] = self._tensors[op.operands[0]]
            case _ if _is_scalar(op):
                self._scalar(op, builder)
            case _:
                raise UnsupportedError(
                    f"'{op.name}' cannot be part of a program", location=source_location(op)
                )

    def _bind_results(self, op: Operation) -> None:
        for result, buffer in zip(op.results, _buffers(op, BUFFERS), strict=True):
            if buffer is not None:
                self._tensors[result] = self._buffers.address(buffer)

    def _call(self, op: func.CallOp, builder: PointerBuilder) -> None:
        self._bind_results(op)
        buffers = self._arguments(op)
        symbol = op.callee.root_reference.data
        with self._counters.around(op, builder):
            grid, workers = self._grids.get(symbol, 1), self._workers.get(symbol)
            barriers = self._barriers.get(symbol, ())
            self._kernels.call(builder, symbol, buffers, grid, workers, barriers)

    def _arguments(self, op: func.CallOp) -> list[SSAValue]:
        """The buffers of a kernel: operands, results, scratch memory."""
        buffers = [self._tensors[value] for value in (*op.operands, *op.results)]
        scratch = op.attributes.get(SCRATCH)
        if isinstance(scratch, BufferAttr):
            buffers.append(self._buffers.address(scratch))
        return buffers

    def _return(self, op: func.ReturnOp, builder: PointerBuilder) -> None:
        for value, buffer in zip(op.operands, self._outputs, strict=True):
            target = self._buffers.address(buffer)
            self._copy(value, self._tensors[value], target, builder)
        builder.insert(llvm.ReturnOp(builder.emit(arith.ConstantOp.from_int_and_width(0, 32))))

    def _if(self, op: scf.IfOp, builder: PointerBuilder) -> None:
        self._bind_results(op)
        self._counters.count(op, builder)
        types = _scalar_types(op.results)
        taken, other = (
            self._region(op, inner, key)
            for inner, key in zip(op.regions, ("then", "else"), strict=True)
        )
        emitted = scf.IfOp(self._scalars[op.cond], types, taken, other)
        self._bind_scalars(op.results, builder.insert(emitted).results)

    def _for(self, op: scf.ForOp, builder: PointerBuilder) -> None:
        self._bind_results(op)
        self._counters.count(op, builder)
        self._counters.enter(op, "enter", builder)
        initial = self._enter(op.iter_args, op.results, op.body.block.args[1:], builder)
        lower, upper, step = (self._scalars[value] for value in (op.lb, op.ub, op.step))
        body = Block(arg_types=[op.lb.type, *(value.type for value in initial)])
        self._bind_scalars(op.body.block.args[:1], body.args[:1])
        self._bind_scalars(op.body.block.args[1:], body.args[1:])
        self._counters.enter(op, "next", PointerBuilder(InsertPoint.at_end(body)))
        self._fill(body, op.body.block, op.body.block.args[1:])
        emitted = scf.ForOp(lower, upper, step, initial, Region(body))
        self._bind_scalars(op.results, builder.insert(emitted).results)

    def _while(self, op: scf.WhileOp, builder: PointerBuilder) -> None:
        before, after = op.before_region.block, op.after_region.block
        self._bind_results(op)
        self._counters.count(op, builder)
        self._counters.enter(op, "enter", builder)
        for argument, buffer in zip(before.args, _buffers(op, CARRIED), strict=True):
            if buffer is not None:
                self._tensors[argument] = self._buffers.address(buffer)
        for argument, result in zip(after.args, op.results, strict=True):
            if isinstance(result.type, TensorType):
                self._tensors[argument] = self._tensors[result]
        initial = self._enter(op.arguments, before.args, before.args, builder)
        head = Block(arg_types=[value.type for value in initial])
        self._bind_scalars(before.args, head.args)
        self._fill(head, before, op.results)
        body = Block(arg_types=_scalar_types(after.args))
        self._bind_scalars(after.args, body.args)
        self._counters.enter(op, "next", PointerBuilder(InsertPoint.at_end(body)))
        self._fill(body, after, before.args)
        emitted = scf.WhileOp(initial, _scalar_types(op.results), Region(head), Region(body))
        self._bind_scalars(op.results, builder.insert(emitted).results)

    def _enter(
        self,
        initial: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        arguments: Sequence[SSAValue],
        builder: PointerBuilder,
    ) -> list[SSAValue]:
        """Copies tensors into the buffers of the loop; gives the scalars to carry."""
        for value, slot, argument in zip(initial, carried, arguments, strict=True):
            if isinstance(value.type, TensorType):
                self._tensors[argument] = self._tensors[slot]
                self._copy(value, self._tensors[value], self._tensors[slot], builder)
        return [self._scalars[v] for v in initial if not isinstance(v.type, TensorType)]

    def _region(self, op: scf.IfOp, region: Region, key: str) -> Region:
        block = Block()
        self._counters.enter(op, key, PointerBuilder(InsertPoint.at_end(block)))
        if region.blocks:
            self._fill(block, region.block, op.results)
        else:
            block.add_op(scf.YieldOp())
        return Region(block)

    def _fill(self, block: Block, source: Block, targets: Sequence[SSAValue]) -> None:
        """Emits `source` into `block`; its terminator hands its values on to `targets`."""
        builder = PointerBuilder(InsertPoint.at_end(block))
        terminator = source.last_op
        assert terminator is not None
        for op in source.ops:
            if op is not terminator:
                self._operation(op, builder)
        self._hand_on(terminator, targets, builder)
        scalars = [self._scalars[v] for v in forwarded(terminator) if v in self._scalars]
        if isinstance(terminator, scf.ConditionOp):
            builder.insert(scf.ConditionOp(self._scalars[terminator.condition], *scalars))
        else:
            builder.insert(scf.YieldOp(*scalars))

    def _hand_on(
        self, terminator: Operation, targets: Sequence[SSAValue], builder: PointerBuilder
    ) -> None:
        """Copies to all targets at once: what a copy may overwrite is staged first."""
        values = forwarded(terminator)
        staging = _buffers(terminator, STAGING, values)
        sources = dict(self._tensors)
        for value, buffer in zip(values, staging, strict=True):
            if buffer is not None:
                sources[value] = self._buffers.address(buffer)
                self._copy(value, self._tensors[value], sources[value], builder)
        for value, target in zip(values, targets, strict=True):
            if isinstance(value.type, TensorType):
                self._copy(value, sources[value], self._tensors[target], builder)

    def _copy(
        self, value: SSAValue, source: SSAValue, target: SSAValue, builder: PointerBuilder
    ) -> None:
        if source is not target:
            builder.copy(target, source, builder.constant(storage_bytes(value.type)))

    def _element(
        self, value: SSAValue, indices: Sequence[SSAValue], builder: PointerBuilder
    ) -> SSAValue:
        """The address of one element of a row-major tensor."""
        pointer, type = self._tensors[value], cast(AnyTensor, value.type)
        stride = bytes_of(type.element_type)
        for index, extent in reversed(list(zip(indices, type.get_shape(), strict=True))):
            position = builder.emit(arith.IndexCastOp(self._scalars[index], i64))
            offset = builder.emit(arith.MuliOp(position, builder.constant(stride)))
            pointer = builder.address_at(pointer, offset)
            stride *= extent
        return pointer

    def _load(self, pointer: SSAValue, type: Attribute, builder: PointerBuilder) -> SSAValue:
        if isinstance(type, IndexType):
            return builder.emit(arith.IndexCastOp(builder.load(pointer, i64), type))
        return builder.load(pointer, type)

    def _from_elements(self, op: tensor.FromElementsOp, builder: PointerBuilder) -> None:
        self._bind_results(op)
        stride = bytes_of(op.result.type.element_type)
        base = self._tensors[op.result]
        for index, element in enumerate(op.elements):
            builder.store(self._scalars[element], builder.address(base, index * stride))

    def _scalar(self, op: Operation, builder: PointerBuilder) -> None:
        clone = op.clone(dict(self._scalars))
        self._bind_scalars(op.results, builder.insert(clone).results)

    def _bind_scalars(self, sources: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        scalars = [value for value in sources if not isinstance(value.type, TensorType)]
        self._scalars.update(zip(scalars, values, strict=True))


def emit_program(
    source: ModuleOp,
    function: func.FuncOp,
    *,
    symbol: str = ENTRY,
    counters: dict[str, int] | None = None,
) -> ModuleOp:
    """The program of a function after `plan-memory`.

    The module defines `symbol(env, inputs, outputs, weights, arena) -> i32` in upstream dialects
    and declares the kernels it calls. With `counters`, numbers by name, it counts and times every
    op; what is missing there is added. Raises BraidError for counters in a function of several
    lanes, where waiting would count as running.
    """
    if counters is not None and lane_count(function) > 1:
        raise BraidError(
            "kernels that run side by side cannot be profiled",
            location=source_location(function),
            hint="profile with one lane; the profile holds for several",
        )
    return ProgramEmitter(source, function, symbol, counters).module


def _buffers(
    op: Operation, name: str, values: Sequence[SSAValue] | None = None
) -> list[BufferAttr | None]:
    attribute = op.attributes.get(name)
    if not isinstance(attribute, ArrayAttr):
        return [None] * len(op.results if values is None else values)
    entries = cast(ArrayAttr[Attribute], attribute).data
    return [entry if isinstance(entry, BufferAttr) else None for entry in entries]


def _scalar_types(values: Sequence[SSAValue]) -> list[Attribute]:
    return [value.type for value in values if not isinstance(value.type, TensorType)]


def _is_scalar(op: Operation) -> bool:
    values = (*op.operands, *op.results)
    return not op.regions and not any(isinstance(value.type, TensorType) for value in values)


def _move_ops(source: Block, target: Block) -> None:
    for op in list(source.ops):
        op.detach()
        target.add_op(op)
