"""Whole models: braid compared with other runtimes, on one thread each or `--threads`, in one
process.

``python -m benchmarks.models --models DIR --peers ort,iree --runs 30 --json out.json`` measures
every ``.onnx`` file in DIR (or those that ``--only`` names) on seeded random inputs. ONNX Runtime
is the reference of ratios and errors, or the first peer that takes the model, where it does not.
`braid-f32` is braid on the model in f32 that `MODEL_f16.onnx`, `_bf16` or `_int8` was made from.
``python -m benchmarks.models.make DIR`` makes the models.
``--tolerance 1e-4 --runs 1`` checks answers alone.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import output_file
from benchmarks.models.compare import Result, compare
from benchmarks.models.inputs import random_inputs
from benchmarks.models.peak import peak_flops
from benchmarks.models.peers import PEERS, Inputs
from benchmarks.provenance import provenance

REFERENCE = "ort"


def peers(text: str) -> list[str]:
    """Names of runtimes, separated by commas. Raises ArgumentTypeError for others."""
    names = text.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(PEERS)}")
    return names


def measure(path: Path, options: argparse.Namespace) -> list[Result]:
    """Measure one model on all runtimes that were asked for."""
    inputs: Inputs = random_inputs(path, options.seed)
    candidates = [PEERS["braid"](path, inputs, options.threads)]
    for name in dict.fromkeys([REFERENCE, *options.peers]):
        try:
            candidates.append(PEERS[name](path, inputs, options.threads))
        except Exception as error:  # runtimes raise anything for models that they do not take
            print(f"{name} does not take {path.stem}: {first_line(error)}", file=sys.stderr)
    if len(candidates) == 1:
        raise SystemExit(f"{path}: no runtime beside braid takes it")
    # Threads of a runtime spin for a while when it is done, on cores that the next one needs.
    untimed = 2 if options.threads != 1 else 0
    return compare(path, candidates, candidates[1].name, options.runs, options.warmup, untimed)


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def show(results: Sequence[Result]) -> None:
    """Print one row a measurement."""
    table = Table(
        "model", "runtime", "median ms", "quartiles", "ratio", "error", "load s", "warm s", "arena"
    )
    for result in results:
        warm, arena = (result.details.get(k) for k in ("warm_compile_seconds", "arena_bytes"))
        table.add_row(
            result.model,
            result.runtime,
            f"{result.median * 1e3:.2f}",
            f"{result.first_quartile * 1e3:.2f} – {result.third_quartile * 1e3:.2f}",
            f"{result.ratio:.2f}",
            f"{result.error:.1e}",
            f"{result.load_seconds:.1f}",
            "" if warm is None else f"{warm:.1f}",
            "" if arena is None else f"{arena / 2**20:.1f} MiB",
        )
    Console(width=120).print(table)


def show_summary(results: Sequence[Result]) -> None:
    """Print braid's medians by those of the best peer, over all models."""
    ratios: list[float] = []
    for model in dict.fromkeys(result.model for result in results):
        medians = {r.runtime: r.median for r in results if r.model == model}
        medians.pop("braid-f32", None)  # no peer
        own = medians.pop("braid")
        if medians:
            ratios.append(own / min(medians.values()))
    if ratios:
        mean = statistics.geometric_mean(ratios)
        print(f"braid ÷ best peer: {mean:.3f} in geometric mean, {max(ratios):.3f} at most")


def main() -> None:
    """Measure, print a table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help="directory of .onnx files")
    parser.add_argument("--only", nargs="*", help="names of models, without .onnx")
    parser.add_argument("--peers", type=peers, default=[], help=f"of {', '.join(PEERS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=output_file)
    parser.add_argument(
        "--tolerance", type=float, help="fail if braid's error on a model is larger: 1e-4"
    )
    options = parser.parse_args()
    paths = {path.stem: path for path in sorted(options.models.glob("*.onnx"))}
    if missing := [name for name in options.only or () if name not in paths]:
        raise SystemExit(f"{options.models} has no {', '.join(missing)}; it has {', '.join(paths)}")
    results: list[Result] = []
    for name, path in paths.items():
        if not options.only or name in options.only:
            measured = measure(path, options)
            show(measured)
            results += measured
    show_summary(results)
    flops = peak_flops()
    print(f"peak of one core by {np.__name__}'s matrix product: {flops / 1e9:.0f} GFLOP/s")
    if options.json:
        report = {
            **provenance(("onnxruntime", "openvino", "iree-base-runtime", "torch")),
            "threads": options.threads,
            "peak_flops": flops,
            "results": [asdict(result) for result in results],
        }
        options.json.write_text(json.dumps(report, indent=1))
    if wrong := [r.model for r in results if r.runtime == "braid" and not is_close(r, options)]:
        raise SystemExit(f"not within {options.tolerance:g} of {REFERENCE}: {', '.join(wrong)}")


def is_close(result: Result, options: argparse.Namespace) -> bool:
    """Return whether the error is within the tolerance that was asked for, if one was."""
    return options.tolerance is None or result.error <= options.tolerance


if __name__ == "__main__":
    main()
