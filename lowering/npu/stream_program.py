"""A stream that can run: addresses and operands of its instructions, its kernels and results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from braid.analysis.interpreter.interpret import interpret
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.lowering.npu.link import Linked, Use
from braid.lowering.npu.place_buffers import place_buffers
from braid.lowering.npu.tile_kernels import TileKernels
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import ChipProblem
from braid.support.errors import InfeasibleError
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.execute import Kernel, execute
from braid.targets.simulator.instructions import Access, Instruction, Kind, Range, Stream
from braid.targets.simulator.steps import is_declared


@dataclass(frozen=True)
class StreamProgram:
    """`stream`, and the data that its execution needs.

    `kernels` has a function for each kernel. Tensor n outside of the chip is `outside[n]`, a value
    of the block that was lowered. `results` are for each of the block's the kernel that makes it,
    "" for a copy, and the tensors it reads. If `homeless` buffers do not fit in one piece, or an op
    only declares its costs, the stream can be simulated, but not run.
    """

    stream: Stream
    kernels: ModuleOp
    outside: tuple[SSAValue, ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    homeless: int = 0

    def run(
        self,
        backend: BackendDescription,
        values: Mapping[SSAValue, Array],
        *,
        stream: Stream | None = None,
    ) -> list[Array]:
        """Return the results of the block for `values` of what comes from outside.

        `stream` is another one to run in place of its own. Raises BraidError as `simulate` and
        `execute` do.
        """
        kernels = {name: self._kernel(name) for name in self._functions}
        tensors = {
            number: np.ascontiguousarray(values[value]).reshape(-1).view(np.uint8)
            for number, value in enumerate(self.outside)
            if value in values
        }
        ended = execute(stream or self.stream, backend, kernels, tensors)
        return [self._result(kernel, numbers, ended) for kernel, numbers in self.results]

    @property
    def _functions(self) -> dict[str, FuncOp]:
        return {op.sym_name.data: op for op in self.kernels.ops if isinstance(op, FuncOp)}

    def _kernel(self, name: str) -> Kernel:
        """Return the kernel on bytes, interpreted."""
        types = self._functions[name].function_type.inputs

        def compute(operands: Sequence[Array]) -> list[Array]:
            arrays = [_shaped(data, type) for data, type in zip(operands, types, strict=True)]
            made = interpret(self.kernels, arrays, function=name)
            return [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in made]

        return compute

    def _result(self, kernel: str, numbers: Sequence[int], ended: Sequence[Array]) -> Array:
        operands = [ended[number] for number in numbers]
        type = self.outside[numbers[0]].type
        if kernel:
            type = self._functions[kernel].function_type.outputs.data[0]
            operands = self._kernel(kernel)(operands)
        return _shaped(operands[0], type)


def _shaped(data: Array, type: Any) -> Array:
    tensor = cast(TensorType[Any], type)
    return data.view(to_numpy(tensor.element_type)).reshape(tensor.get_shape())


def stream_program(
    linked: Linked, graph: BlockGraph, chip: ChipProblem, capacity: int
) -> StreamProgram:
    """Return the program of a linked stream of `graph`, on a chip with `capacity` bytes."""
    traffic = chip.problem.traffic
    assert traffic is not None
    kernels = TileKernels(graph, traffic, chip.values)
    stream = linked.stream
    if any(map(is_declared, graph.ops)):  # It declares its costs, not its computation.
        return StreamProgram(stream, kernels.module, (), ())
    placed = place_buffers(stream, capacity)
    if placed.homeless:
        return StreamProgram(stream, kernels.module, (), (), placed.homeless)
    buffers = tuple(
        replace(buffer, address=address)
        for buffer, address in zip(stream.buffers, placed.addresses, strict=True)
    )
    ranges = [cast(Range, buffer.range) for buffer in buffers]
    instructions = tuple(
        instruction if use is None else _with_access(instruction, use, ranges, kernels)
        for instruction, use in zip(stream.instructions, linked.uses, strict=True)
    )
    last = graph.block.last_op
    returned = () if last is None else last.operands
    results = tuple(kernels.of_result(value) for value in returned)
    addressed = replace(stream, instructions=instructions, buffers=buffers, tensors=kernels.tensors)
    return StreamProgram(addressed, kernels.module, tuple(kernels.outside), results)


SHARES = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3)
"""Shares of the chip's memory that a stream may fill: tried until buffers fit in one piece."""


def with_addresses(
    backend: BackendDescription, lower: Callable[[BackendDescription], StreamProgram]
) -> StreamProgram:
    """Return the result of `lower` for `backend`, with less on the chip if buffers would have no
    address.

    Such a stream loads and stores more. If no stream has addresses for all, the result is the
    stream for the whole memory.
    """
    whole = lower(backend)
    if not whole.homeless:
        return whole
    memory = backend.memories[0]
    for share in SHARES:
        less = replace(memory, bytes=int(share * memory.bytes))
        try:
            program = lower(replace(backend, memories=(less, *backend.memories[1:])))
        except InfeasibleError:
            break
        if not program.homeless:
            return program
    return whole


def _with_access(
    instruction: Instruction, use: Use, ranges: Sequence[Range], kernels: TileKernels
) -> Instruction:
    reads = tuple(ranges[buffer] for buffer in use.reads)
    writes = tuple(ranges[buffer] for buffer in use.writes)
    if use.is_compute:
        name = kernels.of_op(use.number)
        access = Access(reads, writes, (), name, use.step, use.steps)
    elif instruction.kind is Kind.LOAD:
        kernel, tensors = kernels.of_load(use.number)
        access = Access(reads, writes, tensors, kernel)
    else:
        access = Access(reads, writes, (kernels.of_store(use.number),))
    return replace(instruction, access=access)
