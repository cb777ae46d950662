"""Describe the stages and channels of a model in its descriptor, for streams."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.execution.stages import Channel, Input, Place, stage_graph
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attribute_names import REQUESTS, SLOTS, STAGE_SECONDS
from braid.lowering.host.descriptor import ChannelEntry, StreamStage

Launched = tuple[FuncOp, str]
"""A function and a device that runs it."""
Stream = tuple[int, tuple[StreamStage, ...], tuple[ChannelEntry, ...]]


def stream_of(function: FuncOp, launched: Sequence[Launched]) -> Stream:
    """Return how many requests are under way, stages and channels; 0 and none without slots.

    `launched` are the functions of the model by number.
    """
    requests, graph = function.attributes.get(REQUESTS), stage_graph(function)
    if not isinstance(requests, IntegerAttr) or graph is None:
        return 0, (), ()
    numbers: dict[str, list[int]] = {}
    for number, (own, _) in enumerate(launched):
        numbers.setdefault(own.sym_name.data, []).append(number)
    inputs = len(function.function_type.inputs.data)
    outputs = len(function.function_type.outputs.data)

    def buffer(place: Place) -> int:
        if isinstance(place, Input):
            return place.number
        return inputs + place.number + (outputs if isinstance(place, Channel) else 0)

    slots: dict[int, int] = {}
    stages: list[StreamStage] = []
    for launch, reads, writes in zip(graph.stages, graph.reads, graph.writes, strict=True):
        for place, count in zip(writes, _slots(launch), strict=True):
            if isinstance(place, Channel):
                slots[place.number] = count
        first, *replicas = numbers[launch.callee.string_value()]
        buffers = tuple(map(buffer, reads)), tuple(map(buffer, writes))
        stages.append(StreamStage(first, *buffers, _seconds(launch), tuple(replicas)))
    if len(slots) < len(graph.channels) or not all(slots.values()):
        return 0, (), ()
    channels = (
        ChannelEntry(storage_bytes(value.type), slots[number])
        for number, value in enumerate(graph.channels)
    )
    return requests.value.data, tuple(stages), tuple(channels)


def _slots(launch: Operation) -> Sequence[int]:
    attribute = launch.attributes.get(SLOTS)
    if not isinstance(attribute, DenseArrayBase):
        return [0] * (len(launch.results) - 1)
    return [int(slots) for slots in attribute.get_values()]


def _seconds(launch: Operation) -> float:
    attribute = launch.attributes.get(STAGE_SECONDS)
    return attribute.value.data if isinstance(attribute, FloatAttr) else 0.0
