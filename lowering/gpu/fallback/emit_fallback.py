"""Kernels of GPUs for groups that no family takes: `linalg`, and a thread a point of its nests.

A loop nest on buffers becomes a separate entry, launched when the previous one has ended. Code that
is no nest of `linalg`, such as a sequential loop over a tensor, runs on one thread.
"""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, gpu, memref
from xdsl.dialects.builtin import AffineMapAttr, MemRefType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.bufferized_group import (
    argument_attributes,
    bufferized_group,
    copies_as_nests,
    move_to_scratch,
)
from braid.lowering.common.loop_nest import in_place_arguments
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.fallback.contracted_sums import contract_sums
from braid.lowering.gpu.fallback.known_places import known_places_as_maps
from braid.lowering.gpu.fallback.row_steps import row_program_of
from braid.lowering.gpu.fallback.split_sums import split_sums
from braid.lowering.gpu.fallback.sums_with_epilogue import SumsWithEpilogue, sums_of
from braid.lowering.gpu.launch.entries import (
    buffer_bytes,
    expand_magnitudes,
    gpu_function,
    gpu_module,
    limit_blocks,
)
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.gpu.launch.launches import THREADS, Launch, Launches, blocks_for
from braid.lowering.gpu.nests.emit_rows import RowEmitter, emit_rows, shared_memory
from braid.lowering.gpu.nests.long_rows import LongRowEmitter
from braid.lowering.gpu.nests.row_program import RowProgram
from braid.lowering.gpu.nests.thread_nests import ThreadNest
from braid.lowering.gpu.nests.transposed_nest import TransposedNest
from braid.lowering.gpu.nests.wide_nest import WideNest
from braid.lowering.gpu.nests.wide_sums import WideSums
from braid.targets.kernels.kernel_family import InPlace

VERSION = 15
"""The version of this emitter, as the `version` of a family."""


def emit_fallback(group: FusedOp, symbol: str) -> GpuKernel:
    """Return a kernel for any group of ops with static shapes, in the layouts of its types.

    Raises as `bufferized_group`.
    """
    module = bufferized_group(group, symbol)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    operands, results = len(group.inputs), len(group.outputs)
    copies_as_nests(function)
    expand_magnitudes(function)
    known_places_as_maps(module, function)
    contract_sums([op for op in function.walk() if isinstance(op, linalg.GenericOp)])
    in_place = in_place_arguments(function, operands)
    function.arg_attrs = argument_attributes(operands, results, in_place)
    program = RowProgram.of(function, operands)
    is_whole = program is not None and not program.is_starved
    if program is not None and (is_whole or not split_sums(function, True)):
        return _row_kernel(program, module, symbol, group, in_place)
    if program is None:
        split_sums(function)
    arguments = tuple(function.body.block.args[:-2])
    if (sums := sums_of(function, arguments[operands:])) is not None:
        return _sums_kernel(sums, arguments, symbol, group, in_place)
    _fills_as_nests(function)
    scratch_bytes = move_to_scratch(function)
    buffers = tuple(function.body.block.args[:-2])
    outside = (*group.inputs.types, *group.outputs.types)
    sizes = [*(buffer_bytes(b, own) for b, own in zip(buffers, outside, strict=False))]
    if scratch_bytes:
        sizes.append(scratch_bytes)
    entries = _own_constants(module, symbol)
    launches: list[Launch] = []
    for step in _steps(function):
        if (entry := _entry(step, f"{symbol}_{len(launches)}", buffers)) is not None:
            entries += entry[0]
            launches.append(entry[1])
    return GpuKernel.of(
        Launches(symbol, tuple(launches), tuple(sizes), operands, scratch_bytes > 0),
        ModuleOp([gpu_module(entries)]),
        scratch_bytes,
        in_place,
    )


def _row_kernel(
    program: RowProgram,
    module: ModuleOp,
    symbol: str,
    group: FusedOp,
    in_place: tuple[InPlace, ...],
) -> GpuKernel:
    """Return a kernel with all nests in one entry."""
    entry = f"{symbol}_0"
    buffers = program.arguments
    function = gpu_function(entry, [buffer.type for buffer in buffers], program.threads)
    body = function.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(buffers, body.args, strict=True))
    shared = _emit_rows(function, program, values, f"{symbol}_shared")
    outside = (*group.inputs.types, *group.outputs.types)
    sizes = tuple(buffer_bytes(b, own) for b, own in zip(buffers, outside, strict=True))
    launch = Launch(entry, program.blocks, program.threads, tuple(range(len(buffers))))
    return GpuKernel.of(
        Launches(symbol, (launch,), sizes, len(group.inputs)),
        ModuleOp([gpu_module([*shared, function])]),
        in_place=in_place,
    )


def _emit_rows(
    function: gpu.FuncOp,
    program: RowProgram,
    values: dict[SSAValue, SSAValue],
    shared_symbol: str,
) -> list[memref.GlobalOp]:
    """Return the code of an entry, `values` being its arguments for the program's; its shared
    memory.
    """
    body = function.body.block
    if program.needs_registers:
        limit_blocks(function, 1)
    for op in program.function.body.block.ops:
        if isinstance(op, arith.ConstantOp):
            body.add_op(op.clone(values))
    shared = shared_memory(program, shared_symbol)
    emitter = LongRowEmitter if program.is_long else RowEmitter
    emit_rows(Builder(InsertPoint.at_end(body)), program, values, shared, emitter)
    body.add_op(gpu.ReturnOp([]))
    return shared


def _sums_kernel(
    sums: SumsWithEpilogue,
    buffers: tuple[BlockArgument, ...],
    symbol: str,
    group: FusedOp,
    in_place: tuple[InPlace, ...],
) -> GpuKernel:
    """Return a nest that reduces, and the elementwise ops on its result, in one entry."""
    entry = f"{symbol}_0"
    function = gpu_function(entry, [buffer.type for buffer in buffers], THREADS)
    body = function.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(buffers, body.args, strict=True))
    for op in sums.constants:
        body.add_op(op.clone(values))
    sums.emit(Code(Builder(InsertPoint.at_end(body))), values)
    limit_blocks(function, sums.blocks)
    body.add_op(gpu.ReturnOp([]))
    outside = (*group.inputs.types, *group.outputs.types)
    sizes = tuple(buffer_bytes(b, own) for b, own in zip(buffers, outside, strict=True))
    blocks = blocks_for(sums.threads)
    launch = Launch(entry, blocks, THREADS, tuple(range(len(buffers))))
    return GpuKernel.of(
        Launches(symbol, (launch,), sizes, len(group.inputs)),
        ModuleOp([gpu_module([function])]),
        in_place=in_place,
    )


def _fills_as_nests(function: FuncOp) -> None:
    """Rewrite fills as nests, which are spread over threads like every other nest without
    operands.
    """
    for op in [op for op in function.walk() if isinstance(op, linalg.FillOp)]:
        buffer_type = cast(MemRefType[Any], op.outputs[0].type)
        rank = buffer_type.get_num_dims()
        block = Block(arg_types=[buffer_type.element_type])
        block.add_op(linalg.YieldOp(op.inputs[0]))
        nest = linalg.GenericOp(
            [],
            [op.outputs[0]],
            Region(block),
            [AffineMapAttr(AffineMap.identity(rank))],
            [IteratorTypeAttr.parallel()] * rank,
        )
        Rewriter.replace_op(op, nest, [])


def _own_constants(module: ModuleOp, symbol: str) -> list[Operation]:
    """Copy of the module's constants that are used, under names that no other kernel has."""
    used = [op for op in module.walk() if isinstance(op, memref.GetGlobalOp)]
    names = {op.name_.root_reference.data for op in used}
    for op in used:
        op.properties["name"] = SymbolRefAttr(f"{symbol}{op.name_.root_reference.data}")
    globals = [op for op in module.ops if isinstance(op, memref.GlobalOp)]
    found = [op for op in globals if op.sym_name.data in names]
    for op in found:
        op.properties["sym_name"] = StringAttr(f"{symbol}{op.sym_name.data}")
    return [op.clone() for op in found]


def _steps(function: FuncOp) -> list[list[Operation]]:
    """Return the ops that have an effect, in order: a nest alone, others together with their
    neighbours.

    All ops are one step if one of them has a result that is used.
    """
    steps: list[list[Operation]] = []
    for op in list(function.body.block.ops)[:-1]:
        if _is_setup(op):
            continue
        alone = isinstance(op, linalg.GenericOp)
        if alone or not steps or isinstance(steps[-1][-1], linalg.GenericOp):
            steps.append([op])
        else:
            steps[-1].append(op)
    steps = _with_starts(steps)
    results = {result for step in steps for op in step for result in op.results}
    ops = list(function.body.block.ops)[:-1]
    # Values that look like a constant or a view may also be computed from a result.
    if any(not results.isdisjoint(_outside_values(op)) for op in ops):
        return [ops]
    return steps


def _with_starts(steps: Sequence[list[Operation]]) -> list[list[Operation]]:
    """Fill are one step with the nest after them that starts from them."""
    joined: list[list[Operation]] = []
    for step in steps:
        if joined and _started([*joined[-1], *step]) is not None:
            joined[-1] = [*joined[-1], *step]
        else:
            joined.append(step)
    return joined


def _started(step: Sequence[Operation]) -> SSAValue | None:
    """Return the initial value of a nest that reduces, if a step is a fill and a nest after it."""
    if len(step) != 2:
        return None
    fill, nest = step
    if not (isinstance(fill, linalg.GenericOp) and isinstance(nest, linalg.GenericOp)):
        return None
    last = fill.body.block.last_op
    assert last is not None
    same = len(nest.outputs) == 1 and list(fill.outputs) == list(nest.outputs)
    if fill.inputs or not same or fill.outputs[0] in nest.inputs:
        return None
    plain = ThreadNest.of(nest)
    extents = cast(MemRefType[Any], fill.outputs[0].type).get_shape()
    written = sorted(plain.extents[dim] for dim in plain.parallel)
    value = last.operands[0]
    if not plain.reduced or written != sorted(extents) or value.owner.parent is fill.body.block:
        return None
    return value


def _is_setup(op: Operation) -> bool:
    """Return whether an op is a constant or a view, which every entry has for itself."""
    return isinstance(op, memref.GetGlobalOp) or is_side_effect_free(op)


def _outside_values(op: Operation) -> set[SSAValue]:
    return {value for inner in op.walk() for value in inner.operands}


def _entry(
    step: Sequence[Operation], symbol: str, buffers: Sequence[BlockArgument]
) -> tuple[list[Operation], Launch] | None:
    """Return the function of a step, its shared memory, and its launch; None for a nest without
    points.
    """
    parent = step[0].parent_block()
    assert parent is not None
    needed = _setup_of(step, parent)
    rows = row_program_of(step)
    spread = _spread_nest(step) if rows is None else None
    working = 1 if spread is None else spread.threads
    if working == 0:
        return None
    threads = 1 if spread is None else THREADS
    if isinstance(spread, TransposedNest):
        threads = spread.block
    if rows is not None:
        threads = rows[0].threads
    used = [
        buffer
        for buffer in buffers
        if any(buffer in _outside_values(op) for op in (*needed, *step))
    ]
    function = gpu_function(symbol, [buffer.type for buffer in used], threads)
    body = function.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(used, body.args, strict=True))
    for op in needed:
        body.add_op(op.clone(values))
    numbers = tuple(b.index for b in used)
    if rows is not None:
        program, own = rows
        known: dict[SSAValue, SSAValue] = {
            a: values[v] for a, v in zip(program.arguments, own, strict=True)
        }
        shared = _emit_rows(function, program, known, f"{symbol}_shared")
        return [*shared, function], Launch(symbol, program.blocks, threads, numbers)
    for op in step:
        body.add_op(op.clone(values))
    body.add_op(gpu.ReturnOp([]))
    if spread is not None:
        _spread(body, threads, len(step))
    if (
        isinstance(spread, WideSums)
        or (isinstance(spread, TransposedNest) and spread.computes)
        or (isinstance(spread, ThreadNest) and spread.reduced)
    ):
        limit_blocks(function, spread.blocks)
    shared = [spread.shared(symbol)] if isinstance(spread, TransposedNest) else []
    return [*shared, function], Launch(symbol, blocks_for(working, threads), threads, numbers)


def _setup_of(step: Sequence[Operation], block: Block) -> list[Operation]:
    """Return the constants and views that the ops of a step use, in order."""
    wanted = {value for op in step for value in _outside_values(op)}
    needed: list[Operation] = []
    for op in reversed(list(block.ops)):
        if op not in step and _is_setup(op) and not wanted.isdisjoint(op.results):
            needed.append(op)
            wanted |= _outside_values(op)
    return needed[::-1]


def _spread_nest(
    step: Sequence[Operation],
) -> ThreadNest | TransposedNest | WideNest | WideSums | None:
    """Return how a nest is distributed over threads; None for other ops, which run on one."""
    start, op = _started(step), step[-1]
    if not isinstance(op, linalg.GenericOp) or (len(step) > 1 and start is None):
        return None
    plain = ThreadNest.of(op, start=start)
    return TransposedNest.of(plain) or WideNest.of(plain) or WideSums.of(plain) or plain


def _spread(body: Block, threads: int, count: int) -> None:
    """Replace the nest of an entry, of as many ops, by the code of a thread."""
    step = [op for op in body.ops if isinstance(op, linalg.GenericOp)][:count]
    spread = _spread_nest(step)
    assert spread is not None
    spread.emit(Builder(InsertPoint.before(step[0])), threads)
    for op in step:
        op.detach()
        op.erase()
