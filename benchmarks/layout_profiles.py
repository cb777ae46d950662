"""Compare layouts weighted by a real run's counts with unweighted ones.

``python -m benchmarks.layout_profiles --models DIR --runs 30 --json out.json`` makes the six models
of `benchmarks.models.control_flow` if they are not in DIR, profiles each on half of its samples,
compiles it with layouts that count every op once, and with layouts that count it by the profile,
and runs both in turns on all samples, one thread. ``--measure SECONDS`` first times the kernels of
each model in all layouts; both selections then decide by these measurements.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import braid
from benchmarks.command import run_command
from benchmarks.layout_variants import Selection, build, decide
from benchmarks.models.compare import Array, Candidate, Run, interleave, largest_error
from benchmarks.models.control_flow import MODELS
from benchmarks.models.control_flow.samples import samples
from benchmarks.models.make import make
from braid.tuning.tune_model import measure_model


@dataclass(frozen=True)
class Gain:
    """Seconds for all samples once, the ratio weighted / unweighted over runs, and reorders."""

    model: str
    unweighted: float
    weighted: float
    ratio: float
    first_quartile: float
    third_quartile: float
    reorders: tuple[int, int]
    error: float


def profile(path: Path, inputs: list[list[Array]], directory: Path) -> Path:
    """Write a file with the counts of the model at `path` over `inputs`."""
    model = braid.compile(path, profile=True)
    for arrays in inputs:
        model.run(arrays)
    entries = model.profile().items()
    ops = {name: {"count": e.count, "seconds": e.seconds} for name, e in entries}
    file = directory / f"{path.stem}.json"
    file.write_text(json.dumps({"ops": ops}))
    return file


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    _: KW_ONLY
    models: Path
    only: Sequence[str] = tuple(MODELS)
    runs: int = 30
    warmup: int = 3
    seed: int = 1
    measure: float = 0.0


def measure(path: Path, options: Settings, directory: Path) -> Gain:
    """Compare both selections on one model."""
    if options.measure:
        print(measure_model(path, options.measure), flush=True)
    named = samples(path.stem, options.seed)
    order = [spec.name for spec in braid.compile(path).inputs]
    inputs = [[sample[name] for name in order] for sample in named]
    counts = profile(path, inputs[::2], directory)
    selections = [
        Selection("unweighted", ignore_profile=True, profile=counts),
        Selection("weighted", profile=counts),
    ]
    before, after = (decide(path, selection) for selection in selections)
    models = build(path, selections)
    outputs = [[y for x in inputs for y in m.run(x)] for m in models.values()]
    candidates = [Candidate(n, _on_all(m, inputs), 0.0, {}) for n, m in models.items()]
    plain, weighted = interleave(candidates, options.runs, options.warmup)
    ratios = [w / p for p, w in zip(plain, weighted, strict=True)]
    low, middle, high = (float(np.quantile(ratios, q)) for q in (0.25, 0.5, 0.75))
    return Gain(
        model=path.stem,
        unweighted=statistics.median(plain),
        weighted=statistics.median(weighted),
        ratio=middle,
        first_quartile=low,
        third_quartile=high,
        reorders=(before.reorders, after.reorders),
        error=largest_error(outputs[1], outputs[0]),
    )


def _on_all(model: braid.Model, inputs: list[list[Array]]) -> Run:
    return lambda: [model.run(arrays) for arrays in inputs][-1]


def main(options: Settings) -> object:
    """Measure, print a line a model and the mean, and write the figures as JSON."""
    results: list[Gain] = []
    with TemporaryDirectory() as directory:
        for name in options.only:
            result = measure(make(options.models, name), options, Path(directory))
            results.append(result)
            before, after = result.reorders
            print(
                f"{name:14} unweighted {result.unweighted * 1e3:8.3f} ms ({before} reorders), "
                f"weighted {result.weighted * 1e3:8.3f} ms ({after}): {result.ratio:.3f} "
                f"({result.first_quartile:.3f} – {result.third_quartile:.3f})",
                flush=True,
            )
    mean = statistics.mean(1 - result.ratio for result in results)
    print(f"mean gain {mean:.1%}, largest ratio {max(result.ratio for result in results):.3f}")
    return {"mean_gain": mean, "results": results}


if __name__ == "__main__":
    run_command(main)
