"""The processes and channels of a design, for `solvers/streams`."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from braid.dialects.braid_hls.design import ChannelOp, DesignOp, stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import Loops, StageOp
from braid.dialects.braid_hls.weights import WeightsOp
from braid.solvers.streams.depths import IMAGES
from braid.solvers.streams.network import Channel, Network, Process, sink, source


def channels_of(design: DesignOp) -> list[ChannelOp]:
    """Return the channels in the order in which `network_of` numbers them."""
    return [op for op in design.body.block.ops if isinstance(op, ChannelOp)]


def stages_of(design: DesignOp) -> list[StageOp]:
    """Return the stages in their order."""
    return [op for op in design.body.block.ops if isinstance(op, StageOp)]


def permutes_of(design: DesignOp) -> list[PermuteOp]:
    """Return the permutes in their order."""
    return [op for op in design.body.block.ops if isinstance(op, PermuteOp)]


def workers_of(design: DesignOp) -> list[StageOp | PermuteOp]:
    """Return the stages and permutes: all that reads channels and writes them."""
    return [op for op in design.body.block.ops if isinstance(op, StageOp | PermuteOp)]


def weights_of(design: DesignOp) -> list[WeightsOp]:
    """Return the tensors that are read from memory, in the order of its ports."""
    return [op for op in design.body.block.ops if isinstance(op, WeightsOp)]


def depths_of(design: DesignOp) -> list[int]:
    """Return the depth of each channel, and the images in the memory of each permute."""
    depths = [channel.depth.value.data for channel in channels_of(design)]
    return depths + [permute.images.value.data for permute in permutes_of(design)]


def give_depths(design: DesignOp, depths: Sequence[int]) -> None:
    """Write the depth of each channel, and the images of each permute."""
    ops = [*channels_of(design), *permutes_of(design)]
    for op, depth in zip(ops, depths, strict=True):
        name = "depth" if isinstance(op, ChannelOp) else "images"
        op.attributes[name] = IntegerAttr(depth, i64)


def start_depths(design: DesignOp) -> list[int]:
    """Return the channel depths at which no writer waits for its own results in flight."""
    under_way = [places_under_way(channel.stream) for channel in channels_of(design)]
    return under_way + [IMAGES for _ in permutes_of(design)]


def places_under_way(stream: SSAValue) -> int:
    """Return the places in a channel with which its writer alone need not wait."""
    writer = stream.owner
    return (writer.latency.value.data if isinstance(writer, StageOp | PermuteOp) else 0) + 2


def network_of(design: DesignOp) -> Network:
    """Return a source for each input, the stages in their order, and a sink for each output.

    A permute is two processes, which fill and drain a memory.
    """
    arguments, outputs = design.body.block.args, design.output.streams
    processes = [source(beats_read(value)) for value in arguments]
    writers: dict[SSAValue, int] = {value: index for index, value in enumerate(arguments)}
    readers: dict[SSAValue, int] = {}
    memories: list[Channel] = []
    for op in workers_of(design):
        number = len(processes)
        readers |= dict.fromkeys(op.inputs, number)
        if isinstance(op, PermuteOp):
            processes += _fill_and_drain(op)
            bits = len(op.order) * stream_of(op.input).element.width.data
            memories.append(Channel(number, number + 1, bits, is_memory=True))
        else:
            processes.append(process_of(op))
        writers[op.output] = len(processes) - 1
    for value in outputs:
        channel = value.owner
        assert isinstance(channel, ChannelOp), "verified by the design"
        readers[value] = len(processes)
        processes.append(sink(processes[writers[channel.stream]].writes.size))
    channels = [
        Channel(writers[op.stream], readers[op.output], stream_of(op.stream).bits)
        for op in channels_of(design)
    ]
    return Network(tuple(processes), (*channels, *memories))


def _fill_and_drain(op: PermuteOp) -> list[Process]:
    words = np.arange(op.words, dtype=np.int64)
    passes = op.ii.value.data
    writes = (np.arange(op.beats, dtype=np.int64) + 1) * passes - 1
    return [
        Process(f"{op.label.data} (in)", op.words, words, words[-1:], 0),
        Process(op.label.data, op.beats * passes, words[:1], writes, op.latency.value.data),
    ]


def process_of(stage: StageOp) -> Process:
    """Return when a stage reads and writes, in iterations of an image."""
    loops = stage.loops
    reads, writes = reads_and_writes(loops)
    begin = (0, 0)
    if stage.weights is not None:
        assert isinstance(stage.weights.owner, WeightsOp), "verified by the design"
        # The request is made in cycle 0; its answer is in the buffer in the cycle after it came.
        first = 0 if loops.over_image else int(writes[0]) - loops.folds[0] * loops.folds[1] + 1
        begin = first, stage.weights.owner.latency.value.data + 1
    latency = stage.latency.value.data
    return Process(stage.label.data, loops.iterations, reads, writes, latency, begin)


def reads_and_writes(loops: Loops) -> tuple[np.ndarray, np.ndarray]:
    """Return the iterations of an image that read, and those that write."""
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
    """Return the beats of one image that the stage after the channel reads."""
    for use in value.uses:
        channel = use.operation
        if isinstance(channel, ChannelOp):
            for reader in _readers(channel):
                if isinstance(reader, StageOp):
                    return reader.loops.pixels
                if isinstance(reader, PermuteOp):
                    return reader.words
    return 1


def _readers(channel: ChannelOp) -> Sequence[object]:
    return [use.operation for use in channel.output.uses]
