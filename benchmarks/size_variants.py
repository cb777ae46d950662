"""Code that is added for the sizes that a service sees: `python -m benchmarks.size_variants`.

Each model has one open dim, whose sizes are drawn by Zipf's law. The model is compiled once for all
sizes, some requests are run with a profile, and it is compiled again with this profile. Both then
run other requests of the same law on one thread, in turns. The exit status is 1 where outputs
differ, where a model that should gain is not 1.15 times as fast by CPU time, or if another one gets
specialized code.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import braid
from benchmarks.arguments import output_file
from benchmarks.provenance import provenance
from braid.analysis.diagnostics.remarks import collect_remarks

EXPECTED = 1.15
_LARGEST, _EXPONENT = 64, 1.5
_REQUESTS, _TURNS = 2000, 9


@dataclass(frozen=True)
class Case:
    """A model with an open dim of its only input, of `width` elements of `dtype` a row."""

    name: str
    model: onnx.ModelProto
    width: int
    dtype: type[np.generic]
    gains: bool


@dataclass(frozen=True)
class Row:
    """The CPU seconds of a request in the mean, medians over turns, and what was added."""

    name: str
    gains: bool
    variants: int
    open: float
    profiled: float
    open_compile_seconds: float
    profiled_compile_seconds: float
    open_bytes: int
    profiled_bytes: int
    equal: bool

    @property
    def gain(self) -> float:
        """Return how many times as fast requests are with the profile."""
        return self.open / self.profiled

    @property
    def is_right(self) -> bool:
        """Return whether code was added where, and only where, it pays."""
        chosen = self.gain >= EXPECTED if self.gains else self.variants == 0
        return self.equal and chosen


def cases() -> list[Case]:
    """Return integer products, which open dims slow down, and small ones of floats."""
    return [
        Case("int8 products", _integers(3, 512), 512, np.uint8, gains=True),
        Case("small f32 products", _floats(3, 64), 64, np.float32, gains=False),
    ]


def _integers(layers: int, width: int) -> onnx.ModelProto:
    """Return products of integers with a bit of arithmetic between them."""
    random, nodes, weights = (
        np.random.default_rng(0),
        list[onnx.NodeProto](),
        [
            numpy_helper.from_array(np.array(2e-4, np.float32), "scale"),
            numpy_helper.from_array(np.array(128, np.uint8), "zero"),
        ],
    )
    x = "x"
    for layer in range(layers):
        values = random.integers(-127, 128, (width, width), dtype=np.int8)
        weights.append(numpy_helper.from_array(values, f"w{layer}"))
        nodes.append(helper.make_node("MatMulInteger", [x, f"w{layer}", "zero"], [f"i{layer}"]))
        nodes.append(helper.make_node("Cast", [f"i{layer}"], [f"f{layer}"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [f"f{layer}", "scale"], [f"s{layer}"]))
        x = f"s{layer}"
        if layer < layers - 1:
            x = f"q{layer}"
            nodes.append(helper.make_node("QuantizeLinear", [f"s{layer}", "scale", "zero"], [x]))
    return _model(nodes, weights, TensorProto.UINT8, width, x)


def _floats(layers: int, width: int) -> onnx.ModelProto:
    random, nodes = np.random.default_rng(0), list[onnx.NodeProto]()
    weights = list[onnx.TensorProto]()
    x = "x"
    for layer in range(layers):
        values = random.standard_normal((width, width)) / np.sqrt(width)
        weights.append(numpy_helper.from_array(values.astype(np.float32), f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{layer}"], [f"h{layer}"]))
        nodes.append(helper.make_node("Relu", [f"h{layer}"], [f"y{layer}"]))
        x = f"y{layer}"
    return _model(nodes, weights, TensorProto.FLOAT, width, x)


def _model(
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[onnx.TensorProto],
    dtype: int,
    width: int,
    output: str,
) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "served",
        [value("x", dtype, ["rows", width])],
        [value(output, TensorProto.FLOAT, ["rows", width])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def sizes(seed: int) -> NDArray[np.int64]:
    """Return the rows of each request, by Zipf's law from 1 row on."""
    shares = np.arange(1, _LARGEST + 1) ** -_EXPONENT
    drawn = np.random.default_rng(seed).choice(_LARGEST, _REQUESTS, p=shares / shares.sum())
    return drawn + 1


def measure(case: Case) -> Row:
    """Return the times of a case, and the cost of compilations."""
    every = np.random.default_rng(1).integers(0, 100, (_LARGEST, case.width)).astype(case.dtype)
    counted = braid.compile(case.model, profile=True, threads=1, cache=False)
    for rows in sizes(0):
        counted(every[:rows])
    counts = [each.to_json() for each in counted.profiled_sizes()]
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "profile.json")
        profile.write_text(json.dumps({"ops": {}, "sizes": counts}))
        plain, first, plain_bytes = _compiled(case, Path(folder, "open.braid"), None)
        with collect_remarks() as remarks:
            added, second, added_bytes = _compiled(case, Path(folder, "added.braid"), profile)
    requests = [every[:rows] for rows in sizes(2)]
    equal = all(np.allclose(plain(x), added(x), rtol=1e-4, atol=1e-4) for x in requests)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_TURNS):
        for model, own in zip((plain, added), times, strict=True):
            own.append(_seconds(model, requests))
    (said,) = (each for each in remarks if each.pass_name == "select-variants")
    print(f"{case.name}: {said.message}")
    variants = cast(int, said.data["chosen"])
    before, after = map(statistics.median, times)
    costs = (first, second, plain_bytes, added_bytes)
    return Row(case.name, case.gains, variants, before, after, *costs, equal)


def _compiled(case: Case, path: Path, profile: Path | None) -> tuple[braid.Model, float, int]:
    """Return a model, the CPU seconds of its compilation, and the bytes of its artifact."""
    began = time.process_time()
    model = braid.compile(case.model, use_profile=profile, threads=1, cache=False, jobs=1)
    seconds = time.process_time() - began
    model.save(path)
    return model, seconds, path.stat().st_size


def _seconds(model: braid.Model, requests: Sequence[NDArray[Any]]) -> float:
    began = time.process_time()
    for x in requests:
        model(x)
    return (time.process_time() - began) / len(requests)


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=output_file)
    options = parser.parse_args()
    rows = list(map(measure, cases()))
    for row in rows:
        print(
            f"{row.name}: code for {row.variants} sizes, {1e6 * row.open:.1f} → "
            f"{1e6 * row.profiled:.1f} µs a request, gain {row.gain:.2f}; compilation "
            f"{row.open_compile_seconds:.1f} → {row.profiled_compile_seconds:.1f} s, "
            f"{row.open_bytes >> 10} → {row.profiled_bytes >> 10} KiB"
        )
    if options.json is not None:
        found = {**provenance(), "rows": [{**asdict(row), "gain": row.gain} for row in rows]}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(row.is_right for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
