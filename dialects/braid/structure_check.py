"""Whether the structure of an op fits the op: asked when ops of other packages are verified."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from braid.dialects.braid.scalar import Argument, Load, Position, walk
from braid.dialects.braid.structure import Access, OperandSource, Stage, Structure


def structure_fault(structure: Structure, op: Operation) -> str | None:
    """What is wrong with `structure` as that of `op`, None if nothing is."""
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
    return cast(TensorType[Any], value.type).get_shape()


def _element_type(value: SSAValue) -> Attribute:
    return cast(TensorType[Any], value.type).element_type
