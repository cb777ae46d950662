"""Streams over two cores: throughput compared with one core, and with two instances of the model.

    python -m benchmarks.streams MODEL.onnx… [--decide] [--seconds 3] [--rounds 7] [--json FILE]

With `--decide`, the strategy `throughput` assigns ops to devices, for the target `host-2`. Without,
each model is split where the predicted seconds of its kernels, in topological order, reach a part
of their sum (`--part`, one half), compiled for the target `host-2` and run as a stream. In turns,
for `--seconds` each: the whole model on one thread; two instances of it, each in its own thread on
its own core; the stream; and, for latency, the split model request by request. The stream must give
the same bits as calls of the split model. With `--balance N` the split is moved N times by the
measured times of a stream's stages. Two instances ÷ one tells how much of two cores the machine
gave at all; the load average is kept with the figures. Ratios are medians over the rounds in which
both one and two instances came within a tenth of their best: in the others, somebody else had the
cores.
"""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

import braid
from benchmarks.command import run_command
from benchmarks.models.inputs import random_inputs
from braid.analysis.structure.clusters import is_placed
from braid.dialects.braid.attribute_names import DEVICE
from braid.dialects.braid.names import names_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import public_functions
from braid.driver.pipeline import passes_for
from braid.driver.read_source import read_source
from braid.driver.sources.source_model import SourceModel
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of
from braid.universe import make_context

Arrays = list[NDArray[Any]]
TARGET = "host-2"
NEAR = 0.9
"""Of the best rate, in rounds that count."""


@dataclass(frozen=True)
class Measured:
    """Requests per second of each way to run a model, once a round, and the split's latency."""

    one: list[float]
    two: list[float]
    stream: list[float]
    latency: list[float]
    whole_latency: list[float]


def seconds_by_name(source: SourceModel) -> dict[str, float]:
    """Predict the seconds of a model's kernels, by the last of the names in each."""
    context, module = make_context(), source.module.clone()
    passes = passes_for(module)
    names = [pass_.name for pass_ in passes]
    run_pipeline(context, module, passes[: names.index("apply-clusters")])
    costs = CostSource(target_of(module))
    found: dict[str, float] = {}
    for op in public_functions(module)[0].body.block.ops:
        if isinstance(op, FusedOp):
            own, cost = costs.of(op), costs.cost(op)
            for name in names_of(op)[-1:]:
                found[name] = found.get(name, 0.0) + cost.seconds + own.start_of(cost)
    return found


def ops_of(source: SourceModel) -> list[Operation]:
    """Return the computed ops of a model, in order."""
    block = public_functions(source.module)[0].body.block
    return [op for op in block.ops if is_placed(op)]


def split(source: SourceModel, part: float) -> SourceModel:
    """Split the model after ops that take this fraction of its predicted seconds on one core."""
    seconds = seconds_by_name(source)
    copy = SourceModel(source.name, source.module.clone(), source.parameters)
    ops = ops_of(copy)
    costs = [sum(seconds.get(name, 0.0) for name in names_of(op)) for op in ops]
    reached = np.cumsum(costs) <= part * sum(costs)
    for op, first in zip(ops, reached, strict=True):
        op.attributes[DEVICE] = StringAttr("cpu:0" if first else "cpu:1")
    return copy


def compile_split(source: SourceModel, part: float) -> braid.Model:
    """Return the split model for two cores."""
    own = split(source, part)
    return braid.compile(own.module, parameters=own.parameters, target=TARGET)


def balanced(
    source: SourceModel, part: float, rounds: int, inputs: Arrays
) -> tuple[braid.Model, float]:
    """Return the split model after `rounds` moves of the cut towards equal stages."""
    model = compile_split(source, part)
    for _ in range(rounds):
        with model.stream(repeat(inputs, 12)) as stream:
            for _, _ in zip(range(12), stream, strict=False):
                pass
            times = [stage.seconds / stage.count for stage in stream.stages()]
        if len(times) != 2 or abs(times[0] - times[1]) < 0.03 * sum(times):
            break
        rates = part / times[0], (1 - part) / times[1]
        middle = (times[0] + times[1]) / 2
        part = middle * rates[0] if times[0] > middle else 1 - middle * rates[1]
        model = compile_split(source, part)
    return model, part


def repeat(inputs: Arrays, count: int | None = None) -> Iterator[tuple[NDArray[Any], ...]]:
    """Return the same request again and again."""
    while count is None or count > 0:
        yield tuple(inputs)
        count = None if count is None else count - 1


def rate_of_calls(models: Sequence[braid.Model], inputs: Arrays, seconds: float) -> float:
    """Return requests per second of models that are called concurrently, each on its own core."""
    cores = sorted(os.sched_getaffinity(0))
    counts = [0] * len(models)
    begin = time.perf_counter()

    def call(index: int) -> None:
        os.sched_setaffinity(0, {cores[index % len(cores)]})
        while time.perf_counter() - begin < seconds:
            models[index].run(inputs)
            counts[index] += 1

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(models))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def rate_of_stream(model: braid.Model, inputs: Arrays, seconds: float) -> float:
    """Return requests per second of a stream, from its first result on."""
    with model.stream(repeat(inputs), copy=False) as stream:
        next(stream)
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            next(stream)
            count += 1
        return count / (time.perf_counter() - begin)


def latency(run: Callable[[], object], seconds: float) -> float:
    """Return the median seconds of one call."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def check(model: braid.Model, inputs: Arrays, whole: braid.Model) -> float:
    """Return the largest difference from the whole model; raises SystemExit if a stream differs."""
    expected = model.run(inputs)
    for result in model.stream(repeat(inputs, 8)):
        results = cast(Arrays, list(result) if isinstance(result, tuple) else [result])
        if not all(map(np.array_equal, results, expected)):
            raise SystemExit("the stream differs from calls")
    pairs = zip(expected, whole.run(inputs), strict=True)
    return max(float(np.abs(a - b).max() / (np.abs(b).max() or 1.0)) for a, b in pairs)


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    models: Sequence[Path]
    _: KW_ONLY
    seconds: Annotated[float, "of each measurement"] = 3.0
    rounds: int = 7
    part: Annotated[float, "of the seconds on the first core"] = 0.5
    balance: Annotated[int, "times to move the split"] = 0
    decide: Annotated[bool, "let braid assign devices"] = False


def measure(path: Path, options: Settings) -> dict[str, Any]:
    """All figures of one model."""
    named = random_inputs(path)
    whole = braid.compile(path)
    inputs = [named[spec.name] for spec in whole.inputs]
    if options.decide:
        model, part = braid.compile(path, target=TARGET, partition="throughput"), 1.0
    else:
        source = read_source(make_context(), path, target=TARGET)
        model, part = balanced(source, options.part, options.balance, inputs)
    error = check(model, inputs, whole)
    with tempfile.TemporaryDirectory() as directory:
        whole.save(file := Path(directory) / "whole.braid")
        instances = [braid.load(file), braid.load(file)]
        found = Measured([], [], [], [], [])
        for turn in range(options.rounds + 1):
            rates = (
                rate_of_calls(instances[:1], inputs, options.seconds),
                rate_of_calls(instances, inputs, options.seconds),
                rate_of_stream(model, inputs, options.seconds),
                latency(lambda: model.run(inputs), options.seconds / 3),
                latency(lambda: instances[0].run(inputs), options.seconds / 3),
            )
            for values, rate in zip(vars(found).values(), rates, strict=True):
                if turn:  # the first one warms up
                    values.append(rate)
    with model.stream(repeat(inputs, 20)) as stream:
        for _, _ in zip(range(20), stream, strict=False):
            pass
        stages = [vars(stage) for stage in stream.stages()]
    free = [
        turn
        for turn in range(options.rounds)
        if found.one[turn] >= NEAR * max(found.one) and found.two[turn] >= NEAR * max(found.two)
    ]
    free = free or list(range(options.rounds))

    def ratio(values: Sequence[float], others: Sequence[float]) -> float:
        return statistics.median(values[turn] / others[turn] for turn in free)

    return {
        "free_rounds": len(free),
        "part": part,
        "load_average": os.getloadavg()[0],
        "error": error,
        "capacity": model.stream([]).capacity,
        "rates": vars(found),
        "to_one": ratio(found.stream, found.one),
        "to_two": ratio(found.stream, found.two),
        "two_to_one": ratio(found.two, found.one),
        "latency_to_whole": ratio(found.latency, found.whole_latency),
        "stages": stages,
    }


def main(options: Settings) -> object:
    """Measures and prints a line for each model."""
    results: dict[str, Any] = {}
    for path in options.models:
        row = results[path.stem] = measure(path, options)
        rates = {name: statistics.median(values) for name, values in row["rates"].items()}
        print(
            f"{path.stem:14} one {rates['one']:7.2f}/s  two {rates['two']:7.2f}/s  "
            f"stream {rates['stream']:7.2f}/s  ÷ one {row['to_one']:.2f}  "
            f"÷ two {row['to_two']:.2f}  (two ÷ one {row['two_to_one']:.2f}, "
            f"{row['free_rounds']} of {options.rounds} rounds)  "
            f"latency {1e3 * rates['latency']:.1f} ms (whole {1e3 * rates['whole_latency']:.1f})  "
            f"part {row['part']:.3f}",
            flush=True,
        )
        for stage in row["stages"]:
            seconds = stage["seconds"] / max(1, stage["count"])
            devices = " and ".join((stage["device"], *stage["replicas"]))
            print(
                f"    {stage['name']:12} on {devices}: {1e3 * seconds:.2f} ms, expected "
                f"{1e3 * stage['expected_seconds']:.2f} ms"
            )
    return results


if __name__ == "__main__":
    run_command(main)
