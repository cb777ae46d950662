"""Random functions that can be computed, and what it takes to run them on a simulated chip."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, SSAValue

from braid.analysis.interpreter.interpret import interpret
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.frontends.mlir import parse_mlir
from braid.lowering.npu.lower_block import lowered_block
from braid.passes.order.candidate_orders import candidate_orders
from braid.passes.order.subgraphs import SubgraphSearch
from braid.solvers.deadline import Deadline
from braid.targets.machines.target import BackendDescription
from braid.universe import make_context


@dataclass(frozen=True)
class Case:
    """A function with random data, and what the interpreter makes of it."""

    module: ModuleOp
    values: dict[SSAValue, Array]
    expected: list[Array]

    @property
    def block(self) -> Block:
        """The block of the function."""
        return main_of(self.module).body.block


def main_of(module: ModuleOp) -> func.FuncOp:
    """Return the function `@main`."""
    return next(
        op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == "main"
    )


def case_of(module: ModuleOp, parameters: dict[str, Array], inputs: list[Array]) -> Case:
    """Return the case of a module whose weights and inputs are given."""
    block = main_of(module).body.block
    values: dict[SSAValue, Array] = dict(zip(block.args, inputs, strict=True))
    for op in block.ops:
        if isinstance(op, ParameterOp):
            values[op.results[0]] = parameters[op.key.data]
        elif not op.operands and hasattr(op, "evaluate"):
            (values[op.results[0]],) = op.evaluate()  # pyright: ignore
    return Case(module, values, interpret(module, inputs, parameters=parameters))


def random_case(seed: int, size: int) -> Case:
    """Return a function of about `size` ops on matrices: products, elementwise ops, and
    addressing."""
    program = _Program(Random(seed))
    for _ in range(size):
        program.grow()
    module = parse_mlir(make_context(), program.text(), "random.mlir").module
    block, random = main_of(module).body.block, np.random.default_rng(seed)
    weights = {
        op.key.data: _filled(op.results[0].type, random)
        for op in block.ops
        if isinstance(op, ParameterOp)
    }
    return case_of(module, weights, [_filled(value.type, random) for value in block.args])


def _filled(type: object, random: np.random.Generator) -> Array:
    assert isinstance(type, TensorType)
    # Products keep the size of what they read, where no function of a number is flat.
    scale = type.get_shape()[0] ** -0.5
    return (scale * random.normal(size=type.get_shape())).astype(to_numpy(type.element_type))


Extents = tuple[int, int]
_EXTENTS = (8, 16, 24, 32)


class _Program:
    """A function of two tensors that grows op by op; tensors are by their numbers."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._shapes = [(random.choice(_EXTENTS), random.choice(_EXTENTS)) for _ in range(2)]
        self._unused = {0, 1}
        self._lines: list[str] = []

    def grow(self) -> None:
        """One or two ops more, on a tensor of the latest."""
        random = self._random
        operand = random.randrange(max(0, len(self._shapes) - 8), len(self._shapes))
        rows, columns = self._shapes[operand]
        same = [n for n, shape in enumerate(self._shapes) if shape == (rows, columns)]
        match random.randrange(8):
            case 0 | 1:
                shape = (columns, random.choice(_EXTENTS))
                weight = self._emit("parameter", [], shape, f'{{key = "w{len(self._shapes)}"}}')
                self._emit("matmul", [operand, weight], (rows, shape[1]))
            case 2 | 3:
                self._emit(random.choice(("tanh", "neg", "abs")), [operand], (rows, columns))
            case 4:
                kind, other = random.choice(("add", "mul", "sub")), random.choice(same)
                # Of a difference to itself nothing would be left.
                kind = "add" if other == operand else kind
                self._emit(kind, [operand, other], (rows, columns))
            case 5:
                self._emit("softmax", [operand], (rows, columns), "{dim = 1 : i64}")
            case 6 if columns % 2 == 0 and columns >= 8:
                # Both halves, so that no byte is made for nothing.
                for begin in (0, columns // 2):
                    whole = (
                        f"offsets = array<i64: 0, {begin}>, sizes = array<i64: {rows}, "
                        f"{columns // 2}>, strides = array<i64: 1, 1>"
                    )
                    self._emit("slice", [operand], (rows, columns // 2), f"{{{whole}}}")
            case _ if rows <= 64:
                both = [operand, random.choice(same)]
                self._emit("concat", both, (2 * rows, columns), "{dim = 0 : i64}")
            case _:
                self._emit("tanh", [operand], (rows, columns))

    def text(self) -> str:
        """Return the function, whose results are the unused values."""
        returned = sorted(self._unused - {0, 1})
        results = ", ".join(map(self._type, returned))
        arguments = ", ".join(f"%v{number}: {self._type(number)}" for number in range(2))
        names = ", ".join(f"%v{number}" for number in returned)
        body = "\n".join(self._lines)
        begin = f"func.func @main({arguments}) -> ({results}) {{"
        return f"{begin}\n{body}\nfunc.return {names} : {results}\n}}"

    def _type(self, number: int) -> str:
        rows, columns = self._shapes[number]
        return f"tensor<{rows}x{columns}xf32>"

    def _emit(self, text: str, operands: list[int], shape: Extents, attributes: str = "") -> int:
        number = len(self._shapes)
        self._shapes.append(shape)
        names = ", ".join(f"%v{operand}" for operand in operands)
        types = ", ".join(map(self._type, operands))
        signature = f"({types}) -> " if operands else ""
        line = f"%v{number} = braid.{text} {names} {attributes} : {signature}{self._type(number)}"
        self._lines.append(line)
        self._unused.difference_update(operands)
        self._unused.add(number)
        return number


def tight(backend: BackendDescription, block: Block, room: float) -> BackendDescription:
    """Return the chip with `room` times the memory of the op of `block` that needs most."""
    capacity = 1 << 40
    roomy = with_memory(backend, capacity)
    traffic = lowered_block(block, roomy)[1].problem.traffic
    assert traffic is not None
    used = max(
        sum(traffic.values[v].size for v in {*traffic.reads.get(op, ()), *traffic.makes[op]})
        for op in traffic.makes
    )
    return with_memory(backend, int(room * used))


def with_memory(backend: BackendDescription, capacity: int) -> BackendDescription:
    """Return the chip with so many bytes."""
    first, *others = backend.memories
    return replace(backend, memories=(replace(first, bytes=capacity), *others))


def proposed_orders(
    block: Block, backend: BackendDescription, count: int, seconds: float
) -> list[tuple[int, ...]]:
    """Return the order that `search-order` finds for a block, and those that it lists with `count`
    candidates.

    A candidate of a subgraph stands among the orders found of the others.
    """
    graph, chip, _ = lowered_block(block, backend)
    deadline = Deadline.after(seconds)
    search = SubgraphSearch(chip.problem, deadline, 0, 0.0, 1, 2)
    subgraphs, joined = search.run()
    found = [tuple(joined.order), tuple(range(len(graph.ops)))]
    for index, subgraph in enumerate(subgraphs):
        listed = candidate_orders(
            search.local(subgraphs, index),
            subgraph.orders,
            subgraph.result.order,
            count,
            Deadline.after(seconds),
        )
        for each in listed:
            orders = [one.order for one in subgraphs]
            orders[index] = tuple(subgraph.ops[place] for place in each.order)
            found.append(tuple(op for order in orders for op in order))
    return list(dict.fromkeys(found))
