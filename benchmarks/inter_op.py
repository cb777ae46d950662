"""Kernels side by side: streams against threads within kernels, and ONNX Runtime's two pools.

    python -m benchmarks.inter_op [MODEL.onnx…] [--threads 2] [--runs 30] [--measure S]
        [--json FILE]

Besides the models given, a model of two branches. Runs take turns among braid's variants, and then
among ONNX Runtime's, whose threads spin for a while after a run. All variants of braid must compute
the same bits as one thread. Ratios are to braid on one thread.
"""

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import braid
from benchmarks.command import run_command
from benchmarks.models.compare import Candidate, interleave
from benchmarks.models.inputs import random_inputs
from braid.analysis.diagnostics.remarks import Remark, collect_remarks

ort: Any = import_module("onnxruntime")
"""ONNX Runtime comes without types."""

Array = NDArray[Any]
WARMUP = 3


def two_branches(depth: int = 6, channels: int = 64, size: int = 28) -> onnx.ModelProto:
    """Two chains of `depth` convolutions on one input, added up at the end."""
    rng = np.random.default_rng(0)
    shape = [1, channels, size, size]
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    ends: list[str] = []
    for branch in "ab":
        value = "x"
        for layer in range(depth):
            name = f"{branch}{layer}"
            weight = rng.normal(0, 0.05, (channels, channels, 3, 3)).astype(np.float32)
            weights.append(numpy_helper.from_array(weight, f"{name}.weight"))
            pads = [1, 1, 1, 1]
            nodes.append(helper.make_node("Conv", [value, f"{name}.weight"], [name], pads=pads))
            nodes.append(helper.make_node("Relu", [name], [f"{name}.relu"]))
            value = f"{name}.relu"
        ends.append(value)
    nodes.append(helper.make_node("Add", ends, ["y"]))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph(nodes, "two_branches", ports[:1], ports[1:], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, ir_version=8, opset_imports=[opset])


def braid_variants(
    path: Path, inputs: Mapping[str, Array], threads: int, measure: float | None
) -> Iterator[Candidate]:
    """One thread, threads within kernels, and streams; streams as measured where asked for."""
    options: dict[str, dict[str, Any]] = {
        "1 thread": {},
        "intra-op": {"threads": threads},
        "inter-op": {"threads": threads, "inter_op_threads": threads},
    }
    if measure is not None:
        options["inter-op measured"] = {**options["inter-op"], "measure_orders": measure}
    for name, given in options.items():
        with collect_remarks() as remarks:
            model = braid.compile(path, **given)
        ordered = [inputs[spec.name] for spec in model.inputs]
        details = {"arena_bytes": float(model.arena_bytes), **_prediction(remarks)}
        yield Candidate(f"braid {name}", lambda m=model, x=ordered: m.run(x), 0.0, details)


def _prediction(remarks: Sequence[Remark]) -> dict[str, float]:
    """Return the figures that `assign-inter-op-streams` expects."""
    for remark in remarks:
        if remark.pass_name == "assign-inter-op-streams":
            names = ("cost", "lower_bound", "seconds_on_one_stream")
            return {f"predicted {name}": float(str(remark.data[name])) for name in names}
    return {}


def ort_variants(path: Path, inputs: Mapping[str, Array], threads: int) -> Iterator[Candidate]:
    """ONNX Runtime on one thread, and with threads in either of its pools."""
    for name, intra, inter in (
        ("1 thread", 1, 1),
        ("intra-op", threads, 1),
        ("inter-op", 1, threads),
    ):
        options: Any = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = intra, inter
        if inter > 1:
            options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        yield Candidate(f"ort {name}", lambda s=session: s.run(None, dict(inputs)), 0.0, {})


def measured(path: Path, threads: int, runs: int, seconds: float | None) -> dict[str, Any]:
    """Median, least and ratio of every variant; raises SystemExit where results differ."""
    inputs = random_inputs(path)
    record: dict[str, Any] = {}
    base: float | None = None
    for variants in (
        braid_variants(path, inputs, threads, seconds),
        ort_variants(path, inputs, threads),
    ):
        candidates = list(variants)
        reference = candidates[0].run()
        for candidate in candidates if base is None else ():
            if not all(map(np.array_equal, candidate.run(), reference)):
                raise SystemExit(f"{path.name}: '{candidate.name}' differs from one thread")
        times = interleave(candidates, runs, WARMUP)
        for candidate, taken in zip(candidates, times, strict=True):
            median = statistics.median(taken)
            base = base or median
            record[candidate.name] = {
                "median": median,
                "minimum": min(taken),
                "ratio": median / base,
                **candidate.details,
            }
    return record


def main(
    models: Sequence[Path] = (), *, threads: int = 2, runs: int = 30, measure: float | None = None
) -> object:
    """Measures and prints a table."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        branches = Path(directory) / "two_branches.onnx"
        branches.write_bytes(two_branches().SerializeToString())
        for path in (branches, *models):
            found = measured(path, threads, runs, measure)
            results[path.stem] = found
            for name, row in found.items():
                arena = (
                    f"  arena {row['arena_bytes'] / 2**20:.2f} MiB" if "arena_bytes" in row else ""
                )
                print(
                    f"{path.stem:15} {name:24} median {1e3 * row['median']:9.3f} ms  least "
                    f"{1e3 * row['minimum']:9.3f} ms  ratio {row['ratio']:.2f}{arena}",
                    flush=True,
                )
    return results


if __name__ == "__main__":
    run_command(main)
