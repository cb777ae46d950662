"""The processes and channels of a design, for `solvers/streams`."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from braid.dialects.braid_hls.design import ChannelOp, DesignOp, stream_of
from braid.dialects.braid_hls.stage import Loops, StageOp
from braid.solvers.streams.network import Channel, Network, Process, sink, source


def channels_of(design: DesignOp) -> list[ChannelOp]:
    """In the order in which `network_of` numbers them."""
    return [op for op in design.body.block.ops if isinstance(op, ChannelOp)]


def depths_of(design: DesignOp) -> list[int]:
    """The depth of each channel."""
    return [channel.depth.value.data for channel in channels_of(design)]


def give_depths(design: DesignOp, depths: Sequence[int]) -> None:
    """Writes the depth of each channel."""
    for channel, depth in zip(channels_of(design), depths, strict=True):
        channel.attributes["depth"] = IntegerAttr(depth, i64)


def places_under_way(stream: SSAValue) -> int:
    """Places in a channel with which its writer alone need not wait."""
    return (stream.owner.latency.value.data if isinstance(stream.owner, StageOp) else 0) + 2


def network_of(design: DesignOp) -> Network:
    """A source for each input, the stages in their order, and a sink for each output."""
    stages = [op for op in design.body.block.ops if isinstance(op, StageOp)]
    arguments, outputs = design.body.block.args, design.output.streams
    processes = [source(beats_read(value)) for value in arguments]
    writers: dict[SSAValue, int] = {value: index for index, value in enumerate(arguments)}
    readers: dict[SSAValue, int] = {}
    for stage in stages:
        number = len(processes)
        processes.append(process_of(stage))
        writers[stage.output] = number
        readers |= dict.fromkeys(stage.inputs, number)
    for value in outputs:
        channel = value.owner
        assert isinstance(channel, ChannelOp), "verified by the design"
        readers[value] = len(processes)
        processes.append(sink(processes[writers[channel.stream]].writes.size))
    channels = [
        Channel(writers[op.stream], readers[op.output], stream_of(op.stream).bits)
        for op in channels_of(design)
    ]
    return Network(tuple(processes), tuple(channels))


def process_of(stage: StageOp) -> Process:
    """When a stage reads and writes, in iterations of an image."""
    loops = stage.loops
    reads, writes = reads_and_writes(loops)
    return Process(stage.label.data, loops.iterations, reads, writes, stage.latency.value.data)


def reads_and_writes(loops: Loops) -> tuple[np.ndarray, np.ndarray]:
    """The iterations of an image that read, and those that write."""
    if loops.over_image:
        folds = loops.folds[0] * loops.folds[1]
        every = np.arange(loops.pixels, dtype=np.int64) * folds
        return every, np.array([loops.iterations - 1], np.int64)
    rows = np.arange(loops.outputs[0], dtype=np.int64) * loops.strides[0]
    columns = np.arange(loops.outputs[1], dtype=np.int64) * loops.strides[1]
    ends = loops.end_of(0, 0) + rows[:, None] * loops.image[1] + columns[None, :]
    more = loops.folds[0] * loops.folds[1] - 1
    pixels = np.arange(loops.pixels, dtype=np.int64)
    before = np.searchsorted(ends.ravel(), pixels, side="left")
    writes = ends.ravel() + more * np.arange(1, ends.size + 1)
    return pixels + more * before, writes


def beats_read(value: SSAValue) -> int:
    """Of one image, by the stage behind."""
    for use in value.uses:
        channel = use.operation
        if isinstance(channel, ChannelOp):
            for reader in _readers(channel):
                if isinstance(reader, StageOp):
                    return reader.loops.pixels
    return 1


def _readers(channel: ChannelOp) -> Sequence[object]:
    return [use.operation for use in channel.output.uses]
