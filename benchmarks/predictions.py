"""Predicted beside measured times of stages, from a calibration on other models.

    python -m benchmarks.predictions MODEL.onnx… [--test NAME…] [--seconds 4] [--rounds 3]

Each model runs as a whole as by `braid targets calibrate --model`, in as many rounds as for tests,
and the fastest record of each group is kept. For each tested model the records are then those of
all others; it is split over the target `host-2` by `assign-devices{strategy=throughput}`, with
`--replicate` also by letting stages take turns on both cores, and run as a stream. Printed are, for
each stage and for the stream (the busiest device), predicted ÷ measured, and the same without any
records. Stages are single threads that keep to their cores. For each stage the fastest of the
rounds, of `--seconds` each, counts, since other load only makes it longer. All times are divided by
how slow the machine was at that moment: a fixed kernel tells.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import braid
from benchmarks.command import run_command
from benchmarks.models.inputs import random_inputs
from benchmarks.streams import TARGET, Arrays, repeat
from braid.driver.pipeline import passes_for, with_partition
from braid.driver.read_source import read_source
from braid.lowering.host.codegen.compiler import compile_kernels
from braid.passes.partition.assign_devices import AssignDevicesPass
from braid.support.records.record_store import Record, default_store
from braid.targets.costs.probe_records import PROBE
from braid.targets.machines.calibration import keep_calibration, load_calibration
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.resolve import target_of
from braid.tuning.calibrate import calibrate
from braid.tuning.probe import probe_model
from braid.tuning.rate_kernels import multiply_adds
from braid.tuning.timing import TimingRequest
from braid.tuning.timing_worker import TimingWorker, timing_worker
from braid.universe import make_context

OFF = 0.2
"""By which part a prediction may be off."""


class Pace:
    """The present slowness of the machine: seconds of a fixed kernel ÷ those at first.

    Virtual machines get slower and faster by a fifth within minutes, whatever runs on them.
    """

    def __init__(self, worker: TimingWorker, first: float | None) -> None:
        """`first` are the seconds that count as 1, by default those of now."""
        kernel = multiply_adds("f32", cpu_machine(NATIVE), 100_000)
        (code,) = compile_kernels([kernel.kernel])
        symbol, grid = kernel.kernel.symbol, kernel.kernel.grid
        self._request = TimingRequest(
            code, symbol, grid, 0, kernel.arguments, cold=False, budget_seconds=0.5
        )
        self._worker = worker
        self.first = self._seconds() if first is None else first

    def now(self) -> float:
        """1 is as at first, more is slower."""
        return self._seconds() / self.first

    def _seconds(self) -> float:
        seconds = self._worker.seconds(self._request)
        if seconds is None:
            raise SystemExit("the kernel that tells how fast the machine is crashed")
        return seconds


def probe(path: Path, pace: Pace) -> list[Record]:
    """Run the model once as a whole; return the records of its groups, at the first pace."""
    forget()
    before = pace.now()
    for report in probe_model(path, target=TARGET, alone=False):
        if report.failures:
            raise SystemExit(f"{path.stem}: {report.failures}")
    slow = (before + pace.now()) / 2
    rows = [row for row in default_store().rows() if row is not None and row.kind == PROBE]
    print(f"{path.stem}: {len(rows)} groups, machine {slow:.2f}", flush=True)
    return [
        replace(row, value={**row.value, "seconds": row.value["seconds"] / slow}) for row in rows
    ]


def fastest(rows: Sequence[Record], others: Sequence[Record]) -> list[Record]:
    """Keep the record with fewer seconds; other load only adds seconds."""
    known = {row.key: row for row in others}
    pairs = [(row, known.get(row.key, row)) for row in rows]
    return [min(pair, key=lambda row: row.value["seconds"]) for pair in pairs]


def forget() -> None:
    """Leaves nothing in the store but the calibration of the machine."""
    store = default_store()
    kept = [row for row in store.rows() if row is not None and row.kind != PROBE]
    for path in store.files():
        path.unlink()
    store.append(kept)


def compile_split(path: Path, *, replicate: bool) -> braid.Model:
    """Compile the model for two cores, by predictions."""
    source = read_source(make_context(), path, target=TARGET)
    passes = with_partition(passes_for(source.module), "throughput", (), target_of(source.module))
    chosen = [
        replace(p, replicate=replicate) if isinstance(p, AssignDevicesPass) else p for p in passes
    ]
    return braid.compile(source.module, parameters=source.parameters, passes=chosen)


def measure(
    model: braid.Model, inputs: Arrays, seconds: float, rounds: int, pace: Pace
) -> dict[str, Any]:
    """Measure the stages of the model as a stream, with predictions, on a machine without
    records."""
    best: dict[str, Any] = {}
    intervals: list[float] = []
    for _ in range(rounds):
        before = pace.now()
        with model.stream(repeat(inputs), copy=False) as stream:
            next(stream)
            begin, count = time.perf_counter(), 0
            while time.perf_counter() - begin < seconds:
                next(stream)
                count += 1
            interval, stages = (time.perf_counter() - begin) / count, stream.stages()
        slow = (before + pace.now()) / 2
        intervals.append(interval / slow)
        for stage in stages:
            known = best.setdefault(stage.name, {"measured": float("inf")})
            known["device"], known["predicted"] = stage.device, stage.expected_seconds
            known["replicas"] = stage.replicas
            known["measured"] = min(known["measured"], stage.seconds / max(1, stage.count) / slow)
    loads: dict[str, float] = {}
    for stage in best.values():
        own = (stage["device"], *stage["replicas"])
        for name in own:
            loads[name] = loads.get(name, 0.0) + stage["predicted"] / len(own)
    stream_row = {"device": "stream", "predicted": max(loads.values()), "measured": min(intervals)}
    return {**best, "stream": stream_row}


def ratios(rows: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Predicted ÷ measured by stage."""
    for name, row in rows.items():
        yield name, row["predicted"] / row["measured"]


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    models: Sequence[Path]
    _: KW_ONLY
    test: Annotated[Sequence[str] | None, "names of the models to test, by default all"] = None
    seconds: float = 4.0
    rounds: int = 3
    replicate: Annotated[bool, "let stages run on both cores"] = False
    cache: Annotated[Path | None, "directory that keeps what is compiled"] = None
    records: Annotated[Path | None, "file with what was probed; written if new"] = None


def main(options: Settings) -> dict[str, Any]:
    """Probes all models, and prints a line for each stage of the tested ones."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["BRAID_CACHE_DIR"] = str(options.cache or directory)
        return run(options)


def run(options: Settings) -> dict[str, Any]:
    """Return the figures of all tested models."""
    default_store().append(())
    machine = cpu_machine(NATIVE)
    if load_calibration(machine) is None:
        keep_calibration(machine, calibrate(machine))
    kept = Kept.read(options.records)
    with timing_worker() as worker:
        pace = Pace(worker, kept.first)
        kept = kept.completed(options.models, options.rounds, pace)
        if options.records is not None:
            options.records.write_text(json.dumps(kept.to_json()))
        probed = {path.stem: kept.rows[path.stem] for path in options.models}
        return tested(options, probed, pace)


@dataclass(frozen=True)
class Kept:
    """The records of each model, for a machine whose fixed kernel takes `first` seconds."""

    first: float | None
    rows: dict[str, list[Record]]

    @staticmethod
    def read(file: Path | None) -> "Kept":
        """Return the content of the file, if there is one."""
        if file is None or not file.exists():
            return Kept(None, {})
        data = json.loads(file.read_text())
        rows = {name: [Record(**row) for row in rows] for name, rows in data["rows"].items()}
        return Kept(data["first"], rows)

    def completed(self, models: Sequence[Path], rounds: int, pace: Pace) -> "Kept":
        """Return it with the records of these models, too: the fastest of `rounds` rounds."""
        missing = [path for path in models if path.stem not in self.rows]
        found = {path.stem: probe(path, pace) for path in missing}
        for _ in range(1, rounds):
            for path in missing:
                found[path.stem] = fastest(found[path.stem], probe(path, pace))
        return Kept(pace.first, self.rows | found)

    def to_json(self) -> dict[str, Any]:
        """As `read` reads it."""
        rows = {name: [vars(row) for row in rows] for name, rows in self.rows.items()}
        return {"first": self.first, "rows": rows}


def tested(options: Settings, probed: dict[str, list[Record]], pace: Pace) -> dict[str, Any]:
    """The figures of all tested models."""
    results: dict[str, Any] = {}
    for path in options.models:
        if options.test and path.stem not in options.test:
            continue
        named = random_inputs(path)
        inputs = list(named.values())
        forget()
        split = partial(compile_split, path, replicate=options.replicate)
        before = measure(split(), inputs, options.seconds / 4, 1, pace)
        default_store().append(
            row for name, rows in probed.items() if name != path.stem for row in rows
        )
        after = measure(split(), inputs, options.seconds, options.rounds, pace)
        results[path.stem] = {"without": before, "with": after}
        show(path.stem, before, after)
    return results


def show(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Print predictions that use records of other models, and the ratios without them."""
    for stage, ratio in ratios(after):
        row = after[stage]
        mark = "" if abs(ratio - 1) <= OFF else "  OFF"
        print(
            f"{name:14} {row['device']:7} predicted {1e3 * row['predicted']:8.2f} ms, measured "
            f"{1e3 * row['measured']:8.2f} ms: {ratio:.2f}{mark}",
            flush=True,
        )
    shown = ", ".join(f"{ratio:.2f}" for _, ratio in ratios(before))
    print(f"{name:14} without records: {shown}", flush=True)


if __name__ == "__main__":
    run_command(main)
