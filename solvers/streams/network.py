"""Processes that read and write beats in fixed iterations, joined by channels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

SOURCE = "source"
SINK = "sink"


@dataclass(frozen=True)
class Process:
    """A process that repeats for every image.

    Each image takes `iterations`. Those in `reads` (ascending) take one beat from each input
    channel, those in `writes` give one to each output channel, `latency` cycles after they began.
    One iteration begins in a cycle. `begin` = (iteration, cycle): that of the first image does not
    begin before.
    """

    name: str
    iterations: int
    reads: Integers
    writes: Integers
    latency: int
    begin: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Channel:
    """Beats from process number `writer` to process number `reader`; `bits` is one's size.

    `is_memory`: each beat is an image that is written number by number, and read in another order.
    So its slot is reserved by the writer's first read in an image, and is free after the reader's
    last write.
    """

    writer: int
    reader: int
    bits: int = 1
    is_memory: bool = False


@dataclass(frozen=True)
class Network:
    """Processes in an order in which writers stand before readers, and the channels between them.

    An iteration that writes takes a place in each channel after it when it begins. A beat can be
    read in the cycle after it was written, and its slot can be reused in the cycle after it was
    read.
    """

    processes: tuple[Process, ...]
    channels: tuple[Channel, ...]


def source(beats: int) -> Process:
    """Return what writes a beat a cycle if there is a place for it."""
    every = np.arange(beats, dtype=np.int64)
    return Process(SOURCE, beats, np.empty(0, np.int64), every, 0)


def sink(beats: int) -> Process:
    """Return a channel that is read every cycle, if there is one."""
    every = np.arange(beats, dtype=np.int64)
    return Process(SINK, beats, every, np.empty(0, np.int64), 0)
