"""Describe the computation of a structured op: stages of iteration spaces with scalar bodies.

Cost, splittable dims, layout propagation and `linalg` are derived from this description.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from braid.dialects.braid.scalar import Argument, Load, Position, Scalar, walk


class IteratorKind(StrEnum):
    """The kind of an iteration dim: in the result, or reduced."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"


@dataclass(frozen=True)
class OperandSource:
    """The op's operand number `index`."""

    index: int


@dataclass(frozen=True)
class StageSource:
    """The result of stage number `index`, which precedes the reader."""

    index: int


Source: TypeAlias = OperandSource | StageSource


@dataclass(frozen=True)
class Padding:
    """Elements around a source that exist only for the reader, all equal to `value`.

    `low` and `high` count elements per dim of the source; the access map then indexes the
    padded source.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: float | int | bool


@dataclass(frozen=True)
class Access:
    """One read: `map` takes iteration dims to an index of `source`."""

    source: Source
    map: AffineMap
    padding: Padding | None = None


@dataclass(frozen=True)
class Stage:
    """One loop nest.

    For every point of the iteration space, `body` is evaluated on the values read (argument i
    is read i). Without reduction dims it is the result's element at `result`; with them the
    result's element is the `combine` of all bodies that fall on it, starting from the neutral
    element of `combine` (`add`, `mul`, `maximum`, `minimum`, `and`, `or`).
    Extents count iterations, DYNAMIC is open.

    In all stages of the dialect the result's dims come first: `result` is the projection on the
    first iteration dims, and a reduced dim that is kept in the result has one parallel iteration.
    """

    kinds: tuple[IteratorKind, ...]
    extents: tuple[int, ...]
    reads: tuple[Access, ...]
    result: AffineMap
    result_shape: tuple[int, ...]
    result_type: Attribute
    body: Scalar
    combine: str | None = None

    @property
    def reduction_dims(self) -> tuple[int, ...]:
        """Iteration dims that are reduced."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind is IteratorKind.REDUCTION)


@dataclass(frozen=True)
class Structure:
    """The stages of an op in order; op result r is the result of stage `results[r]`."""

    stages: tuple[Stage, ...]
    results: tuple[int, ...]


def neutral_element(
    combine: str, is_float: bool, bits: int, is_unsigned: bool = False
) -> float | int | bool:
    """Return the value that leaves every other value unchanged under `combine`.

    `bits` is the width of integers. Raises ValueError for a `combine` that is not a reduction.
    """
    infinity = float("inf")
    match combine:
        case "add" | "or":
            return 0.0 if is_float else 0
        case "mul":
            return 1.0 if is_float else 1
        case "and":
            return (1 << bits) - 1 if is_unsigned or bits == 1 else -1
        case "maximum" if is_unsigned:
            return 0
        case "minimum" if is_unsigned:
            return (1 << bits) - 1
        case "maximum":
            return -infinity if is_float else (-(1 << (bits - 1)) if bits > 1 else 0)
        case "minimum":
            return infinity if is_float else ((1 << (bits - 1)) - 1 if bits > 1 else 1)
        case _:
            raise ValueError(f"'{combine}' is not a reduction")


def parallel(count: int) -> tuple[IteratorKind, ...]:
    """Return `count` parallel dims."""
    return (IteratorKind.PARALLEL,) * count


def reduction(count: int) -> tuple[IteratorKind, ...]:
    """Return `count` reduction dims."""
    return (IteratorKind.REDUCTION,) * count


def structure_fault(structure: Structure, op: Operation) -> str | None:
    """Return the error in `structure` as that of `op`, None if there is none."""
    for index, stage in enumerate(structure.stages):
        fault = _stage_fault(stage, op, structure.stages[:index])
        if fault is not None:
            return f"stage {index}: {fault}"
    count, wanted = len(structure.results), len(op.results)
    if count != wanted:
        return f"it names the stages of {count} results, the op has {wanted}"
    for number, (stage, result) in enumerate(zip(structure.results, op.results, strict=True)):
        if not 0 <= stage < len(structure.stages):
            return f"result {number} is of stage {stage}, there are {len(structure.stages)}"
        made = structure.stages[stage]
        if (made.result_shape, made.result_type) != (_shape(result), _element_type(result)):
            return (
                f"stage {stage} gives {list(made.result_shape)} of {made.result_type}, "
                f"result {number} has type {result.type}"
            )
    return None


def _stage_fault(stage: Stage, op: Operation, before: Sequence[Stage]) -> str | None:
    dims = len(stage.extents)
    if len(stage.kinds) != dims:
        return f"{len(stage.kinds)} iterator kinds, but {dims} extents"
    for number, access in enumerate(stage.reads):
        if (fault := _access_fault(access, dims, op, before)) is not None:
            return f"read {number}: {fault}"
    if stage.result.num_dims != dims or len(stage.result.results) != len(stage.result_shape):
        return f"the result's map is {stage.result}, expected one of {dims} dims to its shape"
    if stage.reduction_dims and stage.combine is None:
        return "it has reduction dims, but no 'combine'"
    return next(filter(None, (_leaf_fault(leaf, stage, op) for leaf in walk(stage.body))), None)


def _access_fault(access: Access, dims: int, op: Operation, before: Sequence[Stage]) -> str | None:
    source = access.source
    if isinstance(source, OperandSource):
        if not 0 <= source.index < len(op.operands):
            return f"operand {source.index}, the op has {len(op.operands)}"
        rank = len(_shape(op.operands[source.index]))
    else:
        if not 0 <= source.index < len(before):
            return f"stage {source.index}, which does not stand before it"
        rank = len(before[source.index].result_shape)
    if access.map.num_dims != dims:
        return f"its map takes {access.map.num_dims} dims, the stage has {dims}"
    if len(access.map.results) != rank:
        return f"its map gives {len(access.map.results)} indices, the rank is {rank}"
    return None


def _leaf_fault(leaf: object, stage: Stage, op: Operation) -> str | None:
    if isinstance(leaf, Argument) and not 0 <= leaf.index < len(stage.reads):
        return f"the body uses Argument({leaf.index}), there are {len(stage.reads)} reads"
    if isinstance(leaf, Position) and not 0 <= leaf.dim < len(stage.extents):
        return f"the body uses Position({leaf.dim}), there are {len(stage.extents)} dims"
    if isinstance(leaf, Load) and not 0 <= leaf.operand < len(op.operands):
        return f"the body loads from operand {leaf.operand}, the op has {len(op.operands)}"
    return None


def _shape(value: SSAValue) -> tuple[int, ...]:
    return cast("TensorType[Any]", value.type).get_shape()


def _element_type(value: SSAValue) -> Attribute:
    return cast("TensorType[Any]", value.type).element_type
