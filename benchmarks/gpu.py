"""Correctness and speed of braid on a GPU, in one call of less than 8 minutes.

``python -m benchmarks.gpu [--target gpu-h100] [--json benchmarks/results/gpu.json]`` compiles every
case for the GPU that is there, compares results with numpy (models: with ONNX Runtime), times them
by the device's own account, and prints a table beside what PyTorch has, where it is installed:
cuBLAS and cuDNN by its operators, Triton by ``torch.compile``. Then ``compute-sanitizer``, where it
is there, runs one small case of each kind. What does not fit into ``--seconds`` is listed as left
out.

``--dry`` runs small cases on ``gpu-emulated``; ``--small`` runs them on the target, such as through
a stand-in of the driver (``BRAID_CUDA_LIBRARY``).
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from ml_dtypes import bfloat16
from numpy.typing import NDArray

import braid
from benchmarks import gpu_peers
from benchmarks.models.hand_written import make_loop_if, make_transformer_block
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.targets.machines.load import load_target
from braid.universe import make_context

Array = NDArray[Any]

SECONDS = 440.0
RUNS = 20
SAMPLED = 16
"""Rows of a result that are compared."""
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": bfloat16, "i8": np.int8}
TOLERANCES = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2, "i8": 0.0}

PROJECTIONS = ((4096, 4096), (11008, 4096), (4096, 11008), (12288, 4096), (768, 768), (3072, 768))
"""Columns and depths of products in language models: 7e9 parameters, and BERT-base."""
TOKENS = (16, 128, 512, 2048, 4096)


@dataclass(frozen=True)
class Case:
    """A model of one op, or an ONNX model; `work` is FLOPs, `moved` bytes, of which one limits."""

    kind: str
    name: str
    text: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    element: str = "f32"
    work: float = 0.0
    moved: float = 0.0
    expected: Callable[[Sequence[Array], Array], Array] | None = None
    make: Callable[[], onnx.ModelProto] | None = None


@dataclass
class Outcome:
    """What became of a case: its largest error beside what is allowed, and times in seconds."""

    kind: str
    name: str
    right: bool = False
    error: float = 0.0
    seconds: float | None = None
    rate: str = ""
    compile_seconds: float = 0.0
    peers: dict[str, float] = field(default_factory=dict[str, float])
    note: str = ""


# ---- Cases ----


def product(rows: int, columns: int, depth: int, element: str) -> Case:
    """A product of matrices; of bytes with a sum of i32, and the right one transposed."""
    result = "i32" if element == "i8" else element
    left, right = f"tensor<{rows}x{depth}x{element}>", f"tensor<{depth}x{columns}x{element}>"
    sum = " {accumulator = i32}" if element == "i8" else ""
    text = _function(
        [left, right],
        f"tensor<{rows}x{columns}x{result}>",
        f"braid.matmul %a, %b{sum} : ({left}, {right}) -> tensor<{rows}x{columns}x{result}>",
    )
    shapes = ((rows, depth), (depth, columns))
    name = f"{element} {rows}×{columns}×{depth}"
    return Case(
        *("product", name, text, shapes, element, 2.0 * rows * columns * depth),
        expected=_expected_product,
    )


def _expected_product(inputs: Sequence[Array], rows: Array) -> Array:
    kind = np.int64 if inputs[0].dtype == np.int8 else np.float64
    return inputs[0][rows].astype(kind) @ inputs[1].astype(np.float32).astype(kind)


def rows_case(op: str, rows: int, columns: int, element: str) -> Case:
    """An op of the rows of a matrix: it reads and writes each element once."""
    type, scale = f"tensor<{rows}x{columns}x{element}>", f"tensor<1x{columns}x{element}>"
    bodies = {
        "softmax": f"braid.softmax %a {{dim = 1 : i64}} : ({type}) -> {type}",
        "tanh": f"braid.tanh %a : ({type}) -> {type}",
        "layer_norm": "braid.layer_norm %a, %b, %c {first_dim = 1 : i64, epsilon = 1.0e-5 : f64} "
        f": ({type}, {scale}, {scale}) -> {type}",
    }
    operands = [type, scale, scale] if op == "layer_norm" else [type]
    shapes = ((rows, columns), (1, columns), (1, columns))[: len(operands)]
    moved = 2.0 * rows * columns * DTYPES[element]().itemsize
    text, name = _function(operands, type, bodies[op]), f"{op} {element} {rows}×{columns}"
    expected = partial(_expected_rows, op)
    return Case(op, name, text, shapes, element, 0.0, moved, expected)


def _expected_rows(op: str, inputs: Sequence[Array], rows: Array) -> Array:
    x, *others = (array.astype(np.float64) for array in inputs)
    x = x[rows]
    if op == "tanh":
        return np.tanh(x)
    if op == "softmax":
        powers = np.exp(x - x.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * others[0] + others[1]


def convolution(channels: int, filters: int, size: int, window: int, element: str) -> Case:
    """A convolution of 8 images without padding; half a window less on each side."""
    out = size - window + 1
    image, filter = (
        f"tensor<8x{channels}x{size}x{size}x{element}>",
        f"tensor<{filters}x{channels}x{window}x{window}x{element}>",
    )
    result = f"tensor<8x{filters}x{out}x{out}x{element}>"
    attributes = (
        "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, "
        "pad_high = array<i64: 0, 0>, groups = 1 : i64"
    )
    body = f"braid.conv %a, %b {{{attributes}}} : ({image}, {filter}) -> {result}"
    shapes = ((8, channels, size, size), (filters, channels, window, window))
    work = 2.0 * 8 * filters * out * out * channels * window * window
    text, name = _function([image, filter], result, body), f"conv {element} {channels}→{filters}"
    expected = _expected_convolution
    return Case(
        "conv", f"{name} {size} {window}×{window}", text, shapes, element, work, 0, expected
    )


def _expected_convolution(inputs: Sequence[Array], images: Array) -> Array:
    x, w = (array.astype(np.float64) for array in inputs)
    windows = np.lib.stride_tricks.sliding_window_view(x[images], w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)


def _function(operands: Sequence[str], result: str, body: str) -> str:
    names = ", ".join(
        f'%{name}: {type} {{braid.name = "{name}"}}'
        for name, type in zip("abc", operands, strict=False)
    )
    return (
        f'func.func @main({names}) -> ({result} {{braid.name = "y"}}) {{\n'
        f"  %y = {body}\n  func.return %y : {result}\n}}\n"
    )


def cases(small: bool) -> Iterator[Case]:
    """The most telling first."""
    if small:
        yield from (product(40, 72, 48, element) for element in ("bf16", "f16", "f32", "i8"))
        yield from (rows_case(op, 24, 96, "f32") for op in ("softmax", "layer_norm", "tanh"))
        yield convolution(16, 16, 8, 3, "f32")
        yield Case("model", "transformer block", make=lambda: make_transformer_block(16, 32, 2, 64))
        yield Case("model", "loop and branch", make=make_loop_if)
        return
    yield from (product(n, n, n, "bf16") for n in (8192, 4096))
    for op in ("softmax", "layer_norm", "tanh"):
        yield from (rows_case(op, 16384, 4096, element) for element in ("f32", "f16"))
    yield convolution(64, 64, 56, 3, "f16")
    yield convolution(256, 256, 30, 3, "f16")
    yield Case(
        "model", "transformer block", make=lambda: make_transformer_block(128, 768, 12, 3072)
    )
    yield Case("model", "loop and branch", make=make_loop_if)
    yield from (product(m, n, k, "bf16") for n, k in PROJECTIONS for m in TOKENS)
    yield from (product(4096, 4096, 4096, element) for element in ("f16", "i8", "f32"))


# ---- Running one ----


def run_case(case: Case, target: str, arch: str | None, runs: int, peers: bool) -> Outcome:
    """Compiles, compares and times it; what is wrong is its note."""
    outcome = Outcome(case.kind, case.name)
    try:
        begin = time.perf_counter()
        source = case.make() if case.make else parse_mlir(make_context(), case.text, "m").module
        model = braid.compile(source, target=target, gpu_arch=arch)
        outcome.compile_seconds = time.perf_counter() - begin
        inputs = inputs_of(case, model)
        results = model.run(inputs)
        outcome.error, allowed = compare(case, model, source, inputs, results)
        outcome.right = outcome.error <= allowed
        outcome.note = "" if outcome.right else f"allowed {allowed:g}"
        outcome.seconds = least_seconds(model, inputs, runs, whole=case.make is not None)
        outcome.rate = rate_of(case, outcome.seconds)
        if peers:
            outcome.peers = gpu_peers.seconds(case.kind, inputs, runs)
    except BraidError as error:
        outcome.note = str(error).splitlines()[0]
    return outcome


def inputs_of(case: Case, model: braid.Model) -> list[Array]:
    """Random, of the kind that networks have."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for spec in model.inputs:
        dtype = DTYPES[case.element] if case.make is None else np.dtype(spec.dtype)
        if np.dtype(dtype).kind == "i":
            found.append(rng.integers(-8, 8, spec.shape).astype(dtype))
        else:
            found.append(rng.standard_normal(spec.shape, np.float32).astype(dtype))
    return found


def compare(
    case: Case, model: braid.Model, source: Any, inputs: Sequence[Array], results: Sequence[Array]
) -> tuple[float, float]:
    """The largest error beside the largest number, of sampled rows; and what is allowed."""
    if case.make is not None:
        import onnxruntime

        session: Any = onnxruntime.InferenceSession(source.SerializeToString())
        names = [spec.name for spec in model.inputs]
        wanted = session.run(None, dict(zip(names, inputs, strict=True)))
        pairs = list(zip(results, wanted, strict=True))
        return max(_error(np.asarray(a), np.asarray(b)) for a, b in pairs), 1e-4
    assert case.expected is not None
    count = len(inputs[0])
    rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLED)).astype(int))
    if case.kind == "conv":
        rows = rows[:1]
    return _error(results[0][rows], case.expected(inputs, rows)), TOLERANCES[case.element]


def _error(found: Array, expected: Array) -> float:
    difference = np.abs(found.astype(np.float64) - expected).max(initial=0.0)
    return float(difference / max(np.abs(expected).max(initial=0.0), 1e-30))


def least_seconds(model: braid.Model, inputs: list[Array], runs: int, whole: bool) -> float:
    """Of a run: by the device's own account; of a `whole` model, and without devices, by the clock.

    What a whole model takes has copies from and to the host in it.
    """
    least = float("inf")
    for _ in range(runs):
        before, begin = sum(model.launched_seconds().values()), time.perf_counter()
        model.run(inputs)
        own = sum(model.launched_seconds().values()) - before
        least = min(least, own if own > 0 and not whole else time.perf_counter() - begin)
    return least


def rate_of(case: Case, seconds: float) -> str:
    """In the unit that limits it."""
    if case.work:
        return f"{case.work / seconds * 1e-12:.3g} TFLOP/s"
    return f"{case.moved / seconds * 1e-9:.3g} GB/s" if case.moved else ""


# ---- All of them ----


def sanitize(target: str, arch: str | None) -> Iterator[Outcome]:
    """One small case of each kind by compute-sanitizer."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return
    done: set[str] = set()
    for case in cases(small=True):
        if case.kind in done or case.make is not None:
            continue
        done.add(case.kind)
        with tempfile.TemporaryDirectory(prefix="braid-sanitizer-") as name:
            path = Path(name) / "model.braid"
            module = parse_mlir(make_context(), case.text, "m").module
            braid.compile(module, target=target, gpu_arch=arch, load=False).save(path)
            program = [sys.executable, "-m", "braid.tools.cli", "run", str(path), "--random"]
            for check in ("memcheck", "racecheck", "synccheck"):
                command = [tool, "--tool", check, "--error-exitcode", "9", *program]
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                last = (result.stdout + result.stderr).strip().splitlines()[-1:]
                note = "" if result.returncode == 0 else " ".join(last)
                yield Outcome(
                    "sanitizer", f"{check} {case.name}", result.returncode == 0, note=note
                )


def show(outcome: Outcome) -> None:
    """One line of the table."""
    took = f"{outcome.seconds * 1e6:10.1f} us" if outcome.seconds is not None else ""
    others = "  ".join(
        f"{name} {seconds * 1e6:.1f} us ({seconds / outcome.seconds:.2f}×)"
        for name, seconds in outcome.peers.items()
        if outcome.seconds
    )
    verdict = "right" if outcome.right else "WRONG" if outcome.seconds is not None else "-"
    print(
        f"{outcome.name:32} {verdict:6} {outcome.error:8.1e} {took:14} {outcome.rate:14} "
        f"{others} {outcome.note}",
        flush=True,
    )


def main() -> int:
    """Run as a program; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="gpu-h100")
    parser.add_argument("--gpu-arch")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    target = "gpu-emulated" if arguments.dry else arguments.target
    small = arguments.dry or arguments.small
    machine = load_target(target).device("gpu:0").machine
    begin = time.perf_counter()
    peers = not small and gpu_peers.available()
    found: list[Outcome] = []
    for case in cases(small):
        if time.perf_counter() - begin > arguments.seconds:
            outcome = Outcome(case.kind, case.name, True, note="left out: no time")
        else:
            runs = 2 if small else arguments.runs
            outcome = run_case(case, target, arguments.gpu_arch, runs, peers)
        found.append(outcome)
        show(outcome)
    if not small:
        for outcome in sanitize(target, arguments.gpu_arch):
            found.append(outcome)
            show(outcome)
    took = time.perf_counter() - begin
    wrong = [one.name for one in found if not one.right]
    print(f"{len(found)} cases on {target} ({machine.name}) in {took:.0f} s; wrong: {wrong or 0}")
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        record = {"target": target, "seconds": took, "cases": [asdict(one) for one in found]}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
