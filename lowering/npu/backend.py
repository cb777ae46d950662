"""The backend of chips that are programmed by instructions.

A function is a stream, or several; its plugin plays them on the bytes of the chip, in simulated
time, where instructions compute by kernels that are compiled for the host. What has no stream, such
as a tensor that changes its layout, is a kernel of the host as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import STREAMS
from braid.lowering.common.convert_braid_to_linalg import FAMILIES_ONLY
from braid.lowering.npu.select_stream_schedules import SelectStreamSchedulesPass
from braid.lowering.npu.stream_family import StreamFamily
from braid.lowering.npu.stream_group import described_machine, stream_group
from braid.lowering.npu.stream_meter import stream_meter
from braid.lowering.npu.stream_parts import stream_parts
from braid.lowering.npu.stream_plan import Played, plan_bytes
from braid.lowering.npu.streamed_group import StreamedGroup
from braid.lowering.npu.tile_library import Tiles, kernel_library
from braid.support.errors import BraidError
from braid.targets.backend import (
    Backend,
    BackendGroup,
    Code,
    EmittedKernels,
    Job,
    KernelMeter,
    KernelNeeds,
    Preparation,
)
from braid.targets.backends import backend_of, kernel_families
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.load import load_target
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import Device
from braid.targets.simulator.instructions import from_text
from braid.targets.simulator.stream_bytes import to_bytes

STREAM = "stream"
"""The kind of the code of a chip, and the stage that shows it."""
PLAN = "stream-plan"
"""The kind of code that lists the streams, calls and copies of a chip's functions."""
STREAM_TEXT = "stream-text"
"""The stage that shows the same as text."""


@dataclass(frozen=True)
class NpuBackend(Backend):
    """Streams of adjacent ops, and kernels of the host for all of them; see `Backend`.

    Schedules are those of streams (`groups`): the host's kernels only represent instructions.
    """

    name: str
    stages: tuple[str, ...] = ("linalg", STREAM, STREAM_TEXT)
    schedule_pass: str = SelectStreamSchedulesPass.name

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """Return the families of the host, which computes."""
        host = device.host or load_target().with_settings(device.settings).host_device
        return (*installed, *kernel_families(host))

    def unsupported_reason(self, op: Operation, known: ParameterExpressions) -> str | None:
        """Return a reason for ops that no instruction stands for."""
        return f"'{op.name}' on an NPU" if isinstance(op, FAMILIES_ONLY) else None

    def groups(self, function: FuncOp, job: Job) -> Iterator[BackendGroup]:
        """Yield what the device runs at once, each by a stream."""
        chip = job.target.backend_of(job.device)
        for part in stream_parts(function, job.target, (job.device.name,)):
            if part.device == job.device.name and (group := stream_group(part)) is not None:
                yield BackendGroup(group, part.block, described_machine(chip))

    def group_family(self, job: Job) -> StreamFamily:
        """Return the family of streams, by their schedules."""
        return StreamFamily(job.target.backend_of(job.device))

    def meter(self, job: Job) -> AbstractContextManager[KernelMeter]:
        """Return the simulator of the chip's units; see `stream_meter`."""
        return stream_meter(job)

    def prepare(self, job: Job) -> Preparation:
        """Return passes that split what does not fit, form streams while ops are separate, then the
        host's own.

        Raises BraidError for a device that is not programmed by instructions.
        """
        chip = job.target.backend_of(job.device)
        if chip.issue is None or not chip.memories:
            raise BraidError(
                f"device '{job.device.name}' of target '{job.target.name}' is not programmed by "
                "instructions",
                hint="its backend has no [[backend.issue]] or no [[backend.memory]]",
            )
        host = _host(job)
        preparation = backend_of(host.device).prepare(host)
        return replace(
            preparation,
            before_fusion=(
                self.schedule_pass,
                "select-stream-splits",
                "apply-splits{through-concats=true}",
                # Parts of weights are weights.
                "hoist-parameter-expressions",
                "attach-streams",
                *preparation.before_fusion,
            ),
        )

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> "NpuKernels":
        """Return the kernels of the host: those without a stream, and those that streams compute
        by.
        """
        host = _host(job)
        streamed = {k.sym_name.data: g for k in kernels if (g := StreamedGroup.of(k)) is not None}
        tiles = Tiles.of(streamed)
        plain = [kernel for kernel in kernels if kernel.sym_name.data not in streamed]
        emitted = backend_of(host.device).emit([*plain, *tiles.functions], host)
        symbols = [kernel.sym_name.data for kernel in kernels]
        return NpuKernels(job, tuple(symbols), plain, streamed, tiles, emitted)


@dataclass(frozen=True)
class NpuKernels:
    """Kernels of the host, and the streams of groups; see `EmittedKernels`.

    `symbols` are those of the kernels that were asked for: `plain` ones and `streamed` groups.
    """

    job: Job
    symbols: tuple[str, ...]
    plain: Sequence[FuncOp]
    streamed: Mapping[str, StreamedGroup]
    tiles: Tiles
    emitted: EmittedKernels

    @property
    def needs(self) -> Sequence[KernelNeeds]:
        """Return the needs of the host's kernels; streams need nothing of the arena."""
        known = {needs.symbol: needs for needs in self.emitted.needs}
        return [known.get(symbol, KernelNeeds(symbol)) for symbol in self.symbols]

    def link(self, functions: Sequence[FuncOp]) -> list[Code]:
        """Return each stream with its time, the kernels in one library, and the functions' calls of
        them.

        A whole model that no program launches gets objects for the host, which computes it. So does
        a device whose plugin executes no streams.
        """
        objects = self.emitted.link(functions)
        is_whole = any(function.sym_visibility is None for function in functions)
        if is_whole or not self.job.device.executes_streams:
            return [*objects, *(_code(entry, f) for f in functions for entry in _entries([f]))]
        streams: list[Code] = []
        played: dict[str, Played] = {}
        for function in functions:
            calls = [_symbol(op) for op in function.body.ops if isinstance(op, CallOp)]
            groups = [
                (symbol, self.streamed[symbol]) for symbol in calls if symbol in self.streamed
            ]
            for symbol, group in groups:
                if symbol not in played:
                    names = self.tiles.names_of(symbol)
                    played[symbol] = Played(len(streams), group, names)
                name, data = function.sym_name.data, to_bytes(group.stream)
                streams.append(Code(STREAM, (data,), group.seconds, group.executions, name))
            if not groups:
                streams += [_code(entry, function) for entry in _entries([function])]
        chip = self.job.target.backend_of(self.job.device)
        kernels = (*self.plain, *self.tiles.functions)
        numbers = {symbol: one.number for symbol, one in played.items()}
        library = kernel_library(
            objects, kernels, self.emitted.needs, self.tiles, numbers, self._machine
        )
        plan = Code(PLAN, (plan_bytes(functions, chip, played),))
        return [*streams, library, plan]

    def at(self, stage: str, functions: Sequence[FuncOp]) -> Sequence[str | bytes]:
        """Return the streams, or what the host has."""
        if stage not in (STREAM, STREAM_TEXT):
            return self.emitted.at(stage, functions)
        texts = [_text(entry) for entry in _entries(functions)]
        return texts if stage == STREAM_TEXT else [to_bytes(from_text(text)) for text in texts]

    @property
    def _machine(self) -> Machine:
        return self.job.target.host_device.machine


def _symbol(call: CallOp) -> str:
    return call.callee.root_reference.data


def _code(entry: DictionaryAttr, function: FuncOp) -> Code:
    return Code(
        STREAM,
        (to_bytes(from_text(_text(entry))),),
        _number(entry, "seconds"),
        _number(entry, "executions"),
        function.sym_name.data,
    )


def _host(job: Job) -> Job:
    """Return the job for the host of the target, which computes. Raises BraidError for a chip as
    host.
    """
    host = job.target.host_device
    if host.backend == job.device.backend:
        raise BraidError(
            f"'{host.name}', a chip that is programmed by instructions, is the host of target "
            f"'{job.target.name}'",
            hint="let 'host' name a device of another backend, or leave it out: then it is the "
            "machine braid runs on",
        )
    return replace(job, device=job.target.host_device)


def _entries(functions: Sequence[FuncOp]) -> list[DictionaryAttr]:
    attributes = (function.attributes.get(STREAMS) for function in functions)
    return [
        entry
        for attribute in attributes
        if attribute is not None
        for entry in cast(ArrayAttr[DictionaryAttr], attribute)
    ]


def _text(entry: DictionaryAttr) -> str:
    return cast(StringAttr, entry.data["text"]).data


def _number(entry: DictionaryAttr, name: str) -> float:
    return float(cast(FloatAttr, entry.data[name]).value.data)
