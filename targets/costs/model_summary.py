"""Summarize a model: its ops with their shapes, weights, arithmetic and traffic."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.tensor_storage import logical_bytes
from braid.analysis.structure.operation_counts import flops
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.base import AnyTensor, TensorOp
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.names import names_of
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.braid.regions import GroupOp


@dataclass(frozen=True)
class TensorSummary:
    """A tensor of the model; `type` is printed as in IR, open dims as `?`."""

    name: str
    type: str


@dataclass(frozen=True)
class OpSummary:
    """One op, per run of it.

    `parameters` counts elements of weights among the operands, `flops` scalar operations weighted
    as in the roofline (an exponential is several), `bytes` all operands and results. Open dims
    count as 1.
    """

    name: str
    kind: str
    results: tuple[str, ...]
    parameters: int
    flops: int
    bytes: int
    executions: float


@dataclass(frozen=True)
class ModelSummary:
    """A model: its ports, its ops, and its weights, each counted once."""

    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    ops: tuple[OpSummary, ...]
    parameters: int
    parameter_bytes: int

    @property
    def flops(self) -> float:
        """Scalar operations of one run, by expected executions."""
        return sum(op.flops * op.executions for op in self.ops)

    @property
    def bytes(self) -> float:
        """Bytes that one run reads and writes if nothing is fused, by expected executions."""
        return sum(op.bytes * op.executions for op in self.ops)


def summarize(module: ModuleOp) -> ModelSummary:
    """Return the summary of `module`, whose entry is `@main`."""
    counts = ExecutionCounts.of(module)
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]
    entry = next((f for f in functions if f.sym_name.data == "main"), None)
    sizes = {
        op.key.data: cast(AnyTensor, op.output.type)
        for op in module.walk()
        if isinstance(op, ParameterOp)
    }
    signature = entry.function_type if entry is not None else None
    return ModelSummary(
        _ports(input_names(entry), signature.inputs.data) if entry and signature else (),
        _ports(output_names(entry), signature.outputs.data) if entry and signature else (),
        tuple(_ops(functions, counts)),
        sum(_elements(type) for type in sizes.values()),
        sum(logical_bytes(type) for type in sizes.values()),
    )


def label_of(op: Operation) -> str:
    """Return the name by which people know `op`: the model's own, or else the kind."""
    return ", ".join(names_of(op)) or op.name


def _ports(names: tuple[str, ...], types: tuple[Attribute, ...]) -> tuple[TensorSummary, ...]:
    return tuple(TensorSummary(n, str(t)) for n, t in zip(names, types, strict=True))


def _ops(functions: list[FuncOp], counts: ExecutionCounts) -> Iterator[OpSummary]:
    for function in functions:
        if PREPARED_KEYS in function.attributes:
            continue
        for op in function.walk():
            is_whole = isinstance(op, TensorOp | GroupOp) and not is_leaf(op)
            if is_whole and not isinstance(op.parent_op(), GroupOp) and op.parent is not None:
                yield _summary(op, counts.of_block(op.parent))


def _summary(op: Operation, executions: float) -> OpSummary:
    weights = [v for v in op.operands if isinstance(v.owner, ParameterOp)]
    return OpSummary(
        label_of(op),
        op.name,
        tuple(str(result.type) for result in op.results),
        sum(_elements(cast(AnyTensor, value.type)) for value in weights),
        flops(op),
        sum(map(_bytes, (*op.operands, *op.results))),
        executions,
    )


def _bytes(value: SSAValue) -> int:
    tensor = value.type
    return logical_bytes(cast(AnyTensor, tensor)) if isinstance(tensor, TensorType) else 0


def _elements(tensor: AnyTensor) -> int:
    return prod(max(extent, 1) for extent in tensor.get_shape())
