"""Predicted beside measured times of stages, from a calibration on other models.

    python -m benchmarks.predictions MODEL.onnx… [--test NAME…] [--seconds 4] [--rounds 3]

Each model is run as a whole, once, by what `braid targets calibrate --model` does, and its records
are set aside. For each tested model the records are then those of all others; it is split over the
target `host-2` by `assign-devices{strategy=throughput}` and run as a stream. Printed are, for each
stage and for the stream (the busiest device), predicted ÷ measured, and the same without any
records. Stages are single threads that keep to their cores. A round tells how long a stage takes by
its fastest piece of so many seconds, since whatever else the machine does makes it longer.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import braid
from benchmarks.models.inputs import random_inputs
from benchmarks.streams import TARGET, Arrays, repeat
from braid.support.record_store import Record, default_store
from braid.targets.costs.probe_records import PROBE
from braid.targets.machines.calibration import keep_calibration, load_calibration
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.tuning.calibrate import calibrate
from braid.tuning.probe import probe_model

OFF = 0.2
"""By which part a prediction may be off."""


def probe(path: Path) -> list[Record]:
    """What running the model as a whole says of its groups."""
    forget()
    for report in probe_model(path, target=TARGET, alone=False):
        if report.failures:
            raise SystemExit(f"{path.stem}: {report.failures}")
    return [row for row in default_store().rows() if row is not None and row.kind == PROBE]


def forget() -> None:
    """Leaves nothing in the store but the calibration of the machine."""
    store = default_store()
    kept = [row for row in store.rows() if row is not None and row.kind != PROBE]
    for path in store.files():
        path.unlink()
    store.append(kept)


def measure(path: Path, inputs: Arrays, seconds: float, rounds: int) -> dict[str, Any]:
    """The stages of the model as a stream, predicted and measured."""
    model = braid.compile(path, target=TARGET, partition="throughput")
    best: dict[str, Any] = {}
    intervals: list[float] = []
    for _ in range(rounds):
        with model.stream(repeat(inputs), copy=False) as stream:
            next(stream)
            begin, count = time.perf_counter(), 0
            while time.perf_counter() - begin < seconds:
                next(stream)
                count += 1
            intervals.append((time.perf_counter() - begin) / count)
            for stage in stream.stages():
                known = best.setdefault(stage.name, {"measured": float("inf")})
                known["device"], known["predicted"] = stage.device, stage.expected_seconds
                known["measured"] = min(known["measured"], stage.seconds / max(1, stage.count))
    loads: dict[str, float] = {}
    for stage in best.values():
        loads[stage["device"]] = loads.get(stage["device"], 0.0) + stage["predicted"]
    stream_row = {"device": "stream", "predicted": max(loads.values()), "measured": min(intervals)}
    return {**best, "stream": stream_row}


def ratios(rows: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Predicted ÷ measured by stage."""
    for name, row in rows.items():
        yield name, row["predicted"] / row["measured"]


def main() -> None:
    """Probes all models, and prints a line for each stage of the tested ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--test", nargs="*", help="names of the models to test, by default all")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", type=Path, help="directory that keeps what is compiled")
    parser.add_argument("--records", type=Path, help="file with what was probed; written if new")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["BRAID_CACHE_DIR"] = str(options.cache or directory)
        results = run(options)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The figures of all tested models."""
    default_store().append(())
    machine = cpu_machine(NATIVE)
    if load_calibration(machine) is None:
        keep_calibration(machine, calibrate(machine))
    probed = probes_of(options.models, options.records)
    results: dict[str, Any] = {}
    for path in options.models:
        if options.test and path.stem not in options.test:
            continue
        named = random_inputs(path)
        inputs = list(named.values())
        forget()
        before = measure(path, inputs, options.seconds / 4, 1)
        default_store().append(
            row for name, rows in probed.items() if name != path.stem for row in rows
        )
        after = measure(path, inputs, options.seconds, options.rounds)
        results[path.stem] = {"without": before, "with": after}
        show(path.stem, before, after)
    return results


def probes_of(models: Sequence[Path], file: Path | None) -> dict[str, list[Record]]:
    """The records of each model, of which some may be in `file`."""
    found: dict[str, list[Record]] = {}
    if file is not None and file.exists():
        for name, rows in json.loads(file.read_text()).items():
            found[name] = [Record(**row) for row in rows]
    for path in models:
        if path.stem not in found:
            found[path.stem] = probe(path)
            print(f"{path.stem}: {len(found[path.stem])} groups", flush=True)
    if file is not None:
        plain = {name: [vars(row) for row in rows] for name, rows in found.items()}
        file.write_text(json.dumps(plain))
    return {path.stem: found[path.stem] for path in models}


def show(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Prints what was predicted with records of others, and the ratios without."""
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
    main()
