"""`braid targets`: facts about machines, and measuring this machine."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braid.driver.options import CompileOptions
from braid.support.errors import BraidError
from braid.support.option_names import flag_of
from braid.tools.commands.option_groups import grouped, only
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.command_group import CommandGroup
from braid.tools.terminal.reporter import reporter

if TYPE_CHECKING:
    from rich.table import Table

    from braid.targets.costs.tried_ops import TriedOp
    from braid.targets.machines.figures import Figure
    from braid.targets.machines.mapping_list import MappingEntry
    from braid.targets.machines.target import BackendDescription, Target

targets = CommandGroup(
    name="targets", help="Show what is known of targets, or measure the machine braid runs on."
)


@targets.command()
def show(
    target: Annotated[
        str, typer.Argument(metavar="[TARGET]", help="Name of a target, or its file ….toml.")
    ] = "host",
    cpu: Annotated[
        str | None, typer.Option("--cpu", metavar="NAME", help="Another CPU for the host.")
    ] = None,
) -> Answer:
    """Show devices, machines, links and units of a target, and every rate.

    Shows rates as shipped next to rates as measured by 'braid targets calibrate', which take
    precedence.
    """
    from braid.targets.costs.tried_ops import ops_tried
    from braid.targets.machines.figures import figures_of
    from braid.targets.machines.load import target_names
    from braid.targets.machines.resolve import CPU_OPTION, resolve_target

    found = resolve_target(target, {} if cpu is None else {CPU_OPTION: cpu})
    figures = {device.name: figures_of(device, found) for device in found.devices}
    tried = ops_tried(found)
    data = _as_json(found, figures) | {
        "tried": [asdict(each) for each in tried],
        "known": sorted(target_names()),
    }
    return Answer(data, lambda: _show(found, figures, tried))


def _show(
    found: "Target", figures: "dict[str, tuple[Figure, ...]]", tried: "Sequence[TriedOp]"
) -> None:
    from rich.console import Console

    from braid.targets.machines.load import target_names

    console = Console()
    print(f"target {found.name}, its host is {found.host}")
    console.print(_devices(found))
    if found.links:
        console.print(_links(found))
    if len(found.backends) > 1:
        print("ops by backend, with the priority of each, 1 the best")
        console.print(_mapping_list(found))
    if tried:
        print("ops that were tried by 'braid targets calibrate --model'")
        console.print(_tried(tried))
    for backend in found.backends:
        if backend.units:
            print(f"backend {backend.name}")
            console.print(_units(backend))
    for name, facts in figures.items():
        print(f"device {name}")
        console.print(_figures(facts))
    print(f"known targets: {', '.join(sorted(target_names()))}")


@targets.command()
@grouped
def calibrate(
    options: Annotated[CompileOptions, only("target", "shapes", "dims", "constants")],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Try each op of this model on each device of the target too: .onnx or .mlir.",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1.0,
            help="Time limit of an op; the model as a whole gets ten times as long.",
        ),
    ] = 60.0,
) -> Answer:
    """Measure this machine: operations, bandwidths, starting kernels, joining threads.

    It takes less than a minute, best while the machine does nothing else. All later costs are based
    on these measurements, for this processor and version of the code generator.

    With --model, a machine that was measured before is not measured again. Each distinct op of the
    model is compiled and run on each device that is there, in a process that may crash or hang, and
    the model as a whole where devices run kernels: which ops work, and how fast they are, is kept.
    'braid targets show' lists it.
    """
    if model is not None:
        return _try_model(model, options, time_limit)
    for name in ("target", "shapes", "dims", "constants"):
        if getattr(options, name):
            raise BraidError(f"{flag_of(name)} is about a model", hint="give --model too")
    return _calibrate_machine()


def _calibrate_machine() -> Answer:
    from braid.support.records.record_store import default_store
    from braid.targets.machines.calibration import keep_calibration
    from braid.targets.machines.cpus import NATIVE, cpu_machine
    from braid.targets.machines.figures import figures_of
    from braid.targets.machines.load import load_target
    from braid.tuning.calibrate import calibrate as measure

    default_store().append(())  # If nothing can be kept, it reports that before it takes a minute.
    machine = cpu_machine(NATIVE)
    keep_calibration(machine, measure(machine, reporter().tell))
    host = load_target()
    figures = {host.host: figures_of(host.host_device, host)}
    data = _as_json(host, figures) | {"ops": None}
    return Answer(data, lambda: _print(_figures(figures[host.host])))


def _print(table: "Table") -> None:
    from rich.console import Console

    Console().print(table)


def _try_model(model: Path, options: CompileOptions, limit: float) -> Answer:
    from braid.targets.machines.calibration import keep_calibration, load_calibration
    from braid.targets.machines.cpus import NATIVE, cpu_machine
    from braid.tools.commands.diagnostics import compiling
    from braid.tuning.calibrate import calibrate as measure
    from braid.tuning.probe import Limits, probe_model

    machine = cpu_machine(NATIVE)
    tell = reporter().tell
    with compiling(model, "trying ops of"):
        if load_calibration(machine) is None:
            keep_calibration(machine, measure(machine, tell))
        limits = Limits(op=limit, model=10 * limit)
        target = None if options.target is None else os.fspath(options.target)
        reports = probe_model(model, target=target, options=options, limits=limits, notify=tell)
    data = {"model": str(model), "ops": [asdict(report) for report in reports]}
    return Answer(data, lambda: print("\n".join(report.describe() for report in reports)))


def _as_json(target: "Target", figures: "dict[str, tuple[Figure, ...]]") -> dict[str, Any]:
    devices = [
        {
            "name": device.name,
            "backend": device.backend,
            "plugin": device.plugin,
            "machine": device.machine_name,
            "cpu": device.shipped_machine.cpu,
            "features": list(device.shipped_machine.enabled_features),
            "memories": [asdict(m) for m in target.backend_of(device).memories],
            "figures": [asdict(f) | {"value": f.value} for f in figures.get(device.name, ())],
        }
        for device in target.devices
    ]
    backends = [
        {
            "name": b.name,
            "operations": [asdict(entry) for entry in b.operations],
            "units": [asdict(u) for u in b.units],
        }
        for b in target.backends
    ]
    links = [asdict(link) for link in target.links]
    return {
        "target": target.name,
        "host": target.host,
        "devices": devices,
        "links": links,
        "backends": backends,
    }


def _devices(target: "Target") -> "Table":
    from rich.table import Table

    table = Table("device", "backend", "machine", "plugin", "memories")
    for device in target.devices:
        cpu = device.shipped_machine.cpu
        named = device.machine_name
        machine = named if cpu in ("", named) else f"{named} ({cpu})"
        memories = target.backend_of(device).memories
        sizes = ", ".join(f"{m.name} {_number(m.bytes)}B" for m in memories)
        table.add_row(device.name, device.backend, machine, device.plugin, sizes)
    return table


def _links(target: "Target") -> "Table":
    rows = [
        (link.source, link.destination, f"{_number(link.bandwidth)}B/s", _seconds(link.latency))
        for link in target.links
    ]
    return _table(("from", "to"), ("bandwidth", "latency"), rows)


def _mapping_list(target: "Target") -> "Table":
    from rich.table import Table

    names = dict.fromkeys(e.operation for b in target.backends for e in b.operations)
    table = Table("op", *(backend.name for backend in target.backends))
    for name in sorted(names):
        cells = ([e for e in b.operations if e.operation == name] for b in target.backends)
        table.add_row(name, *("\n".join(map(_entry, cell)) for cell in cells))
    return table


def _tried(ops: "Sequence[TriedOp]") -> "Table":
    rows = [
        (
            op.name,
            op.device,
            "-" if op.priority is None else f"{op.priority}",
            op.source,
            f"{op.failures} of {op.runs} runs",
            _seconds(op.seconds) if op.seconds else "-",
            f"{100 * op.spread:.0f} %" if op.seconds else "-",
        )
        for op in ops
    ]
    words = ("op", "device", "priority", "from")
    return _table(words, ("failed", "median", "spread"), rows)


def _entry(entry: "MappingEntry") -> str:
    where = entry.conditions
    return f"{entry.priority} where {where}" if where else f"{entry.priority}"


def _units(backend: "BackendDescription") -> "Table":
    rows = [
        (
            unit.name,
            unit.resource,
            unit.port,
            f"{_number(unit.rate)}/s" if unit.rate else "as its machine",
            _seconds(unit.startup_seconds),
        )
        for unit in backend.units
    ]
    return _table(("unit", "resource", "port"), ("rate", "start"), rows)


def _figures(figures: "Sequence[Figure]") -> "Table":
    rows = [
        (
            figure.name,
            figure.origin,
            figure.detail,
            _figure(figure.name, figure.shipped),
            _figure(figure.name, figure.measured),
        )
        for figure in figures
    ]
    return _table(("figure", "shipped in", "measured with"), ("shipped", "measured"), rows)


def _table(words: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    """Return a table whose last columns, numbers, are right-aligned."""
    from rich.table import Table

    table = Table(*words, *numbers)
    for column in table.columns[len(words) :]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    return table


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name.endswith("_seconds"):
        return _seconds(value)
    if name.endswith("bandwidth"):
        return f"{_number(value)}B/s"
    if name.endswith("_bytes"):
        return f"{_number(value)}B"
    return f"{_number(value)}/s" if name.startswith("flops") else _number(value)


def _seconds(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} us"


def _number(value: float) -> str:
    """Return a number with a prefix, such as `110 G`, `2.1 M` and `0.8`."""
    for power, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= power:
            return f"{value / power:.3g} {prefix}"
    return f"{value:.3g} " if value >= 10 else f"{value:.3g}"
