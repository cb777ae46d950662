"""Compute, as data for a page, when a circuit's stages are busy and how full its channels are."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from braid.dialects.braid_hls.permute import PermuteOp
from braid.lowering.fpga.circuit import Circuit
from braid.lowering.fpga.design.streams import depths_of, network_of, workers_of
from braid.lowering.fpga.report import taken_of
from braid.solvers.streams import earliest, fill_levels
from braid.solvers.streams.depths import IMAGES
from braid.solvers.streams.network import Integers, Network
from braid.solvers.streams.timing import Times
from braid.targets.machines.machine import Machine

_STRETCHES = 48
"""The intervals of time in each of which a channel holds its maximum."""
_SHADES = 4
"""The shades of how full channels are."""

Rows = list[list[str]]
Bar = dict[str, Any]


def timeline(circuit: Circuit, machine: Machine) -> str:
    """Return a line of JSON: two timelines, of stages and of channels, over the time of two images.

    Each has `title`, `summary`, `lanes`, `unit`, `bars` of `lane`, `start`, `end`, `label` and
    `colour`, and a table of `columns` and `rows`, in which what limits the rate is marked.
    """
    design = circuit.converted.design
    network, depths = network_of(design), depths_of(design)
    times = earliest(network, IMAGES, depths)
    assert times is not None, "the depths were chosen so that it ends"
    taken = "; ".join(
        f"{used:,g} of {given:,.0f} {words} ({used / given:.1%})"
        for words, (used, given) in taken_of(circuit, machine).items()
    )
    rate = circuit.clock / circuit.interval
    summary = f"{circuit.interval} cycles from image to image, {rate:,.0f} images/s. Takes {taken}."
    views = [
        {
            "title": f"Circuit {circuit.name}",
            "summary": summary,
            "lanes": [process.name for process in network.processes],
            "bars": list(_busy(network, times)),
            "table": _stages(circuit),
        },
        {
            "title": f"Channels of {circuit.name}",
            "summary": "How full each channel is; one place less in any, and images end later.",
            "lanes": _names(network),
            "bars": list(_full(fill_levels(network, times), depths)),
            "table": _channels(network, depths, fill_levels(network, times)),
        },
    ]
    return json.dumps([{**view, "unit": "cycles"} for view in views]) + "\n"


def _busy(network: Network, times: Times) -> Iterator[Bar]:
    """Return the time from the first to the last access of an image, for each process."""
    for lane, (process, reads, writes) in enumerate(
        zip(network.processes, times.reads, times.writes, strict=True)
    ):
        for image in range(IMAGES):
            own = [
                one.reshape(IMAGES, -1)[image] + late
                for one, late in ((reads, 0), (writes, process.latency))
                if one.size
            ]
            start, end = min(int(one[0]) for one in own), max(int(one[-1]) for one in own) + 1
            label = f"{process.name}, image {image}: cycles {start} to {end}"
            yield {"lane": lane, "start": start, "end": end, "label": label, "colour": image}


def _full(levels: Sequence[Integers], depths: Sequence[int]) -> Iterator[Bar]:
    for lane, (level, depth) in enumerate(zip(levels, depths, strict=True)):
        start = 0
        for stretch in np.array_split(level, min(_STRETCHES, len(level))):
            most, end = int(stretch.max()), start + len(stretch)
            if most:
                shade = -(-most * _SHADES // depth) - 1
                label = f"at most {most} of {depth} in cycles {start} to {end}"
                yield {"lane": lane, "start": start, "end": end, "label": label, "colour": shade}
            start = end


def _stages(circuit: Circuit) -> dict[str, Any]:
    rows: Rows = []
    for one in workers_of(circuit.converted.design):
        mark = " * bottleneck" if one.iterations == circuit.interval else ""
        if isinstance(one, PermuteOp):
            shape, folds = str(one.beats), f"{one.banks.value.data} banks"
        else:
            loops = one.loops
            shape = "x".join(map(str, loops.outputs))
            folds = f"{loops.folds[0]} groups, {loops.folds[1]} parts"
        numbers = one.ii.value.data, one.latency.value.data, one.iterations
        rows.append([one.label.data + mark, shape, folds, *map(str, numbers)])
    return {"columns": ["stage", "outputs", "folds", "II", "latency", "cycles"], "rows": rows}


def _names(network: Network) -> list[str]:
    names = [process.name for process in network.processes]
    return [f"{names[one.writer]} to {names[one.reader]}" for one in network.channels]


def _channels(
    network: Network, depths: Sequence[int], levels: Sequence[Integers]
) -> dict[str, Any]:
    rows = [
        [name, str(depth), str(channel.bits), str(int(level.max()))]
        for name, channel, depth, level in zip(
            _names(network), network.channels, depths, levels, strict=True
        )
    ]
    return {"columns": ["channel", "depth", "bits", "most"], "rows": rows}
