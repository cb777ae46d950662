"""The launches of a function as stages of a stream: the operands and results of each, and their
places.

A stage is a launch in the top block of the function. Its result is in a *channel* (slots that
consecutive requests use in turn), or in the caller's buffer if the function returns it. Waits and
views between launches share that memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.launch import AwaitOp, LaunchOp


@dataclass(frozen=True)
class Input:
    """The caller's buffer for input `number` of the function."""

    number: int


@dataclass(frozen=True)
class Output:
    """The caller's buffer for output `number` of the function."""

    number: int


@dataclass(frozen=True)
class Channel:
    """The channel of this number in the function."""

    number: int


Place: TypeAlias = Input | Output | Channel


@dataclass(frozen=True)
class StageGraph:
    """Stages in the order of the block, and the places of their operands and results.

    `channels` are the values that channels hold; `sources` the stage that makes each.
    """

    stages: tuple[LaunchOp, ...]
    reads: tuple[tuple[Place, ...], ...]
    writes: tuple[tuple[Place, ...], ...]
    channels: tuple[SSAValue, ...]
    sources: tuple[int, ...]

    def readers(self, place: Place) -> list[int]:
        """Return the numbers of the stages that read a channel."""
        return [number for number, places in enumerate(self.reads) if place in places]


def stage_graph(function: FuncOp) -> StageGraph | None:
    """Return the stages of `function`; None if the function computes anything besides
    its launches.

    This includes functions with control flow, and those that return one value twice or a value that
    no launch makes.
    """
    block = function.body.block
    launches = [op for op in block.ops if isinstance(op, LaunchOp)]
    returned = _returned(block)
    if not launches or returned is None or not _only_launches(block):
        return None
    places: dict[SSAValue, Place] = {arg: Input(i) for i, arg in enumerate(block.args)}
    channels: list[SSAValue] = []
    sources: list[int] = []
    for number, launch in enumerate(launches):
        for result in launch.outputs:
            if result in returned:
                places[result] = Output(returned.index(result))
            else:
                places[result] = Channel(len(channels))
                channels.append(result)
                sources.append(number)
    reads = [tuple(places[origin(value)] for value in launch.inputs) for launch in launches]
    writes = [tuple(places[result] for result in launch.outputs) for launch in launches]
    return StageGraph(tuple(launches), tuple(reads), tuple(writes), tuple(channels), tuple(sources))


def origin(value: SSAValue) -> SSAValue:
    """Return the value whose memory this is, through waits and views."""
    while isinstance(value, OpResult):
        op = value.op
        if isinstance(op, AwaitOp):
            value = op.inputs[value.index]
        elif is_view(op):
            value = op.operands[0]
        else:
            break
    return value


def _returned(block: Block) -> Sequence[SSAValue] | None:
    """Return the results of launches that the block returns; None where it returns anything
    else.
    """
    last = block.last_op
    assert isinstance(last, ReturnOp)
    values = [origin(value) for value in last.operands]
    made = all(isinstance(value.owner, LaunchOp) for value in values)
    return values if made and len(set(values)) == len(values) else None


def _only_launches(block: Block) -> bool:
    """Return whether nothing is computed beside launches."""
    values = (operand for op in block.ops for operand in op.operands)
    known = all(
        isinstance(value, BlockArgument) or not is_leaf(value.op)
        for value in values
        if isinstance(value, BlockArgument | OpResult)
    )
    return known and all(
        isinstance(op, LaunchOp | AwaitOp | ReturnOp) or is_leaf(op) or is_view(op)
        for op in block.ops
    )
