"""A planned function as a program: kernel calls and control flow on raw pointers."""

from collections.abc import Sequence

from xdsl.dialects import arith, func, llvm, scf, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerType,
    ModuleOp,
    StringAttr,
    i32,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.execution.inter_op_streams import InterOpOrder, inter_op_stream_count
from braid.analysis.storage.strided_storage import is_only_storage
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.attribute_names import SCRATCH_BUFFER, STATUS
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.failure import FailOp
from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.dialects.braid.sizes import is_open
from braid.lowering.host.branch_checks import BranchChecks
from braid.lowering.host.control_flow import ControlFlow
from braid.lowering.host.environment import Buffers, Environment
from braid.lowering.host.failures import Failures
from braid.lowering.host.inter_op_sections import InterOpCall, InterOpSections
from braid.lowering.host.kernel_calls import KernelCalls
from braid.lowering.host.kernel_grids import KernelGrid, kernel_grids
from braid.lowering.host.launches import Launches
from braid.lowering.host.open_model import told_symbols
from braid.lowering.host.open_sizes import OpenSizes, SizeTable
from braid.lowering.host.pointers import POINTER, PointerBuilder, external_function
from braid.lowering.host.profile_counters import ProfileCounters
from braid.lowering.host.values import Values
from braid.support.errors import BraidError, UnsupportedError
from braid.support.sizes.expression import symbols_of

ENTRY = "braid_run"
"""The symbol of a program, unless it is one of several variants."""


def emit_program(
    source: ModuleOp,
    function: func.FuncOp,
    *,
    symbol: str = ENTRY,
    counters: dict[str, int] | None = None,
    sizes: SizeTable | None = None,
) -> ModuleOp:
    """Return the program of a function after `plan-memory`.

    The module defines `symbol(env, inputs, outputs, weights, arena) -> i32` in upstream dialects
    and declares the kernels it calls. With `counters`, numbers by name, it counts and times every
    op; missing names are added. The open sizes that it reads are added to `sizes`. Raises
    BraidError for counters in a function of several streams, where waiting would count as running,
    and for several streams where sizes are open.
    """
    if is_open(function) and inter_op_stream_count(function) > 1:
        raise UnsupportedError(
            "kernels of open sizes do not run side by side",
            location=source_location(function),
            hint="compile for one stream, or give the sizes of the inputs",
        )
    if counters is not None and inter_op_stream_count(function) > 1:
        raise BraidError(
            "kernels that run side by side cannot be profiled",
            location=source_location(function),
            hint="profile with one stream; the profile holds for several",
        )
    table = SizeTable() if sizes is None else sizes
    program = _ProgramEmitter(source, function, symbol, counters, table).emit()
    if untold := symbols_of(*table.extents) - told_symbols(function):
        raise UnsupportedError(
            f"the function has sizes without values: {', '.join(sorted(untold))}",
            location=source_location(function),
            hint="let an input have a dim of that size, or run bind-sizes",
        )
    return program


class _ProgramEmitter:
    """Emits one planned function into `module`."""

    def __init__(
        self,
        source: ModuleOp,
        function: func.FuncOp,
        symbol: str,
        counters: dict[str, int] | None,
        sizes: SizeTable,
    ) -> None:
        self.module = ModuleOp([external_function("memcpy", [POINTER, POINTER, i64], POINTER)])
        self._symbol = symbol
        self._function = function
        self._grids = kernel_grids(source)
        self._statuses = _statuses(source, function)
        for status in self._statuses:
            self.module.body.block.add_op(external_function(status, [POINTER], i32))
        self._entry = Block(arg_types=[POINTER] * 5)
        self._prologue = Block()
        self._environment = environment = Environment(*self._entry.args)
        at_entry = PointerBuilder(InsertPoint.at_end(self._prologue))
        self._sizes = OpenSizes(sizes, environment, at_entry)
        self._values = Values(Buffers(environment, at_entry, self._sizes.offset), self._sizes)
        self._kernels = KernelCalls(self.module, environment, at_entry, self._sizes)
        self._launches = Launches(source, environment, self._values, at_entry)
        self._failures = Failures(self.module, symbol, function, environment, at_entry)
        self._order = InterOpOrder(function)
        self._streams = InterOpSections(
            self.module, symbol, self._order, environment, self._kernels, at_entry
        )
        numbers = {} if counters is None else counters
        self._counters = ProfileCounters(environment, numbers, enabled=counters is not None)
        checks = BranchChecks(self._sizes, self._failures)
        self._control_flow = ControlFlow(
            environment, self._values, self._counters, checks, self._operation
        )

    def emit(self) -> ModuleOp:
        """Return the module with the program in it."""
        block, body = self._function.body.block, Block()
        inputs = [BufferAttr.input(index) for index in range(len(block.args))]
        self._values.bind_buffers(block.args, inputs)
        self._body(block, PointerBuilder(InsertPoint.at_end(body)))
        self._sizes.finish()
        _move_ops(self._prologue, self._entry)
        _move_ops(body, self._entry)
        signature = llvm.LLVMFunctionType([POINTER] * 5, i32)
        linkage = llvm.LinkageAttr("external")
        entry = llvm.FuncOp(self._symbol, signature, linkage, body=Region(self._entry))
        self.module.body.block.add_op(entry)
        return self.module

    def _body(self, block: Block, builder: PointerBuilder) -> None:
        """Emit the body of the function: calls on streams in sections, the rest as it stands."""
        section: list[func.CallOp] = []
        for op in block.ops:
            step = self._order.steps.get(op)
            if step is None:
                self._operation(op, builder)
            elif step.stream is None:
                self._section(section, builder)
                section = []
                self._operation(op, builder)
            else:
                assert isinstance(op, func.CallOp)
                self._values.bind_results(op)
                section.append(op)

    def _section(self, calls: Sequence[func.CallOp], builder: PointerBuilder) -> None:
        """Run `calls` on their streams, or in sequence if none of them are concurrent."""
        steps = [self._order.steps[call] for call in calls]
        if len({step.stream for step in steps}) <= 1:
            for call in calls:
                self._call(call, builder)
            return
        self._streams.emit([self._stream_call(call) for call in calls], builder)

    def _stream_call(self, op: func.CallOp) -> InterOpCall:
        symbol, grid = self._kernel(op)
        return InterOpCall(self._order.steps[op], symbol, tuple(self._arguments(op)), grid)

    def _operation(self, op: Operation, builder: PointerBuilder) -> None:
        match op:
            case ConstantOp() | ParameterOp():
                self._values.bind_results(op)
            case func.CallOp():
                self._call(op, builder)
            case func.ReturnOp():
                self._return(op, builder)
            case LaunchOp():
                self._launches.launch(op, builder)
            case AwaitOp():
                self._launches.finish(op, builder)
            case FailOp():
                self._failures.emit(op.message.data, builder)
            case scf.IfOp() | scf.IndexSwitchOp() | scf.ForOp() | scf.WhileOp():
                self._control_flow.emit(op, builder)
            case tensor.ExtractOp():
                self._values.extract(op, builder)
            case tensor.FromElementsOp():
                self._values.from_elements(op, builder)
            case _ if is_only_storage(op):
                self._values.bind_results(op)
            case _ if is_view(op):
                tensors = self._values.tensors
                tensors[op.results[0]] = tensors[op.operands[0]]
            case _ if _is_scalar(op):
                self._values.compute(op, builder)
            case _:
                raise UnsupportedError(
                    f"'{op.name}' cannot be part of a program", location=source_location(op)
                )

    def _call(self, op: func.CallOp, builder: PointerBuilder) -> None:
        self._values.bind_results(op)
        buffers = self._arguments(op)
        symbol, grid = self._kernel(op)
        with self._counters.around(op, builder):
            self._kernels.call(builder, symbol, buffers, grid)

    def _kernel(self, op: func.CallOp) -> tuple[str, KernelGrid]:
        symbol = op.callee.root_reference.data
        return symbol, self._grids.get(symbol, KernelGrid())

    def _arguments(self, op: func.CallOp) -> list[SSAValue]:
        """Return the buffers of a kernel: operands, results, scratch memory."""
        buffers = [self._values.tensors[value] for value in (*op.operands, *op.results)]
        scratch = op.attributes.get(SCRATCH_BUFFER)
        if isinstance(scratch, BufferAttr):
            buffers.append(self._values.buffers.address(scratch))
        return buffers

    def _return(self, op: func.ReturnOp, builder: PointerBuilder) -> None:
        for index, value in enumerate(op.operands):
            target = self._values.buffers.address(BufferAttr.output(index))
            self._values.copy(value, self._values.tensors[value], target, builder)
        status = self._failures.status(builder)
        for symbol in self._statuses:
            call = llvm.CallOp(symbol, self._environment.env, return_type=i32)
            status = builder.emit(arith.OrIOp(status, builder.emit(call)))
        builder.insert(llvm.ReturnOp(status))


def _statuses(source: ModuleOp, function: func.FuncOp) -> list[str]:
    """Return the functions that tell whether kernels of a program have failed, each once."""
    calls = [op for op in function.walk() if isinstance(op, func.CallOp)]
    called = {call.callee.root_reference.data for call in calls}
    functions = [op for op in source.ops if isinstance(op, func.FuncOp)]
    named = [op.attributes.get(STATUS) for op in functions if op.sym_name.data in called]
    return sorted({name.data for name in named if isinstance(name, StringAttr)})


def _is_scalar(op: Operation) -> bool:
    """Return whether `op` computes scalars from scalars; others could access any memory."""
    types = (*op.operand_types, *op.result_types)
    return op_name(op).partition(".")[0] in ("arith", "math") and all(
        isinstance(type, IntegerType | IndexType | AnyFloat) for type in types
    )


def _move_ops(source: Block, target: Block) -> None:
    for op in list(source.ops):
        op.detach()
        target.add_op(op)
