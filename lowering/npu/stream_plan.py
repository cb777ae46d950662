"""The plan of a chip's functions: what each plays, calls and copies, for the plugin `npu-sim`.

The format is described in the runtime's `src/npu/program.h`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.func import FuncOp

from braid.lowering.host.device_plan import Place, PlannedFunction, doubles, flat, text, words
from braid.lowering.npu.streamed_group import OWN, StreamedGroup
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Kind
from braid.targets.simulator.simulate import fetch_seconds

MAGIC = b"BRDNPLAN"
VERSION = 1
_PLAY, _CALL, _COPY = 0, 1, 2
_OWN = Place(4, 0, 0)
"""Memory that is never shared."""


@dataclass(frozen=True)
class Played:
    """Stream number `number` of the device, and the names of results' kernels there."""

    number: int
    group: StreamedGroup
    names: Mapping[str, str]


def plan_bytes(
    functions: Sequence[FuncOp], chip: BackendDescription, streams: Mapping[str, Played]
) -> bytes:
    """Return the plan of functions whose memory is planned.

    `streams` are those of the kernels that are streams, by symbol; other kernels are the host's.
    Raises UnsupportedError for a function with control flow, which only the host can run.
    """
    planned = [_Function(function, streams).plan() for function in functions]
    return b"".join((MAGIC, words(VERSION), _chip(chip), words(len(functions)), *planned))


def _chip(chip: BackendDescription) -> bytes:
    ports = [port.name for port in chip.ports]
    parts = [words(chip.memories[0].bytes), doubles(fetch_seconds(chip)), words(len(chip.units))]
    for number, unit in enumerate(chip.units):
        executes = sum(1 << Kind.named(kind) for kind in chip.executes(number))
        port = ports.index(unit.port) if unit.port else -1
        parts += [words(executes), doubles(unit.rate, unit.startup_seconds), words(port)]
    return b"".join((*parts, words(len(ports)), doubles(*(port.bandwidth for port in chip.ports))))


class _Function(PlannedFunction):
    """A function whose calls are streams of the chip, or kernels of the host."""

    def __init__(self, function: FuncOp, streams: Mapping[str, Played]) -> None:
        super().__init__(function, device="chip", copy=_COPY)
        self._streams = streams

    def calls(self, op: func.CallOp) -> Iterator[bytes]:
        symbol = op.callee.root_reference.data
        operands = [self.places[value] for value in op.operands]
        results = [self.places[value] for value in op.results]
        played = self._streams.get(symbol)
        if played is None:
            places = [*operands, *results]
            yield words(_CALL) + text(symbol) + words(len(places), *flat(places))
            return
        about = played.group
        tensors = [_OWN if n == OWN else operands[n] for n in about.tensors]
        parts = [words(_PLAY, played.number, len(tensors), *flat(tensors), len(results))]
        for (kernel, numbers), place in zip(about.results, results, strict=True):
            parts.append(text(played.names[kernel] if kernel else ""))
            parts.append(words(len(numbers), *numbers, *place))
        yield b"".join(parts)
