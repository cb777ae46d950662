"""Tables about GPUs, FPGAs and chips with instruction streams."""

from collections.abc import Iterable
from typing import Any

from benchmarks.report.results import (
    mean,
    microseconds,
    number,
    percent,
    read,
    table,
    times,
    title,
)

MOVING = ("softmax", "layer_norm", "tanh", "transpose", "concat", "gather", "reduce", "pool")
FAMILIES = {
    "transposed_nests": "transpositions",
    "wide_nests": "elementwise",
    "rows": "softmax, normalization, reductions of rows",
    "random_movement joined": "concatenations",
    "random_movement cut": "slices and paddings",
    "random_movement gathered": "gathers",
    "random_movement resized": "resizes",
    "random_movement pooled": "pools",
    "channels": "depthwise convolutions",
    "tf32": "products and convolutions as tf32",
    "split_depths": "split-K products",
    "products": "products (`mma.sync`, f32)",
    "hopper_products": "products (`wgmma`)",
}
LISTS = ("kahn", "depth-first", "critical-path")
"""Ways of list scheduling."""


def cases(*kinds: str) -> list[dict[str, Any]]:
    """Return the cases of these kinds that were timed on a GPU."""
    found = read("gpu")["cases"]
    return [each for each in found if each["kind"] in kinds and each["seconds"] is not None]


def models() -> str:
    """Whole models on a GPU compared with `torch.compile`."""
    rows: list[list[str]] = []
    for each in cases("model"):
        if (peer := each["peers"].get("torch.compile")) is not None:
            name, _, kind = each["name"].rpartition(" ")
            seconds = each["seconds"]
            rows.append(
                [
                    title(name),
                    kind,
                    microseconds(seconds),
                    microseconds(peer),
                    times(peer / seconds),
                ]
            )
    rows.append(["geometric mean", "", "", "", times(mean(model_speedups().values()))])
    return table(["model, batch 1", "type", "braid, µs", "torch.compile, µs", "faster by"], rows)


def model_speedups() -> dict[str, float]:
    """Return by model and type how many times as fast braid is as `torch.compile`."""
    peers = {each["name"]: each["peers"].get("torch.compile") for each in cases("model")}
    own = {each["name"]: each["seconds"] for each in cases("model")}
    ratios = {name: peer / own[name] for name, peer in peers.items() if peer is not None}
    return {", ".join((title(name.split()[0]), *name.split()[1:])): r for name, r in ratios.items()}


def beside(kinds: Iterable[str], names: Iterable[str]) -> str:
    """Cases of some kinds beside the peer that they have of `names`."""
    rows: list[list[str]] = []
    ratios: list[float] = []
    for each in cases(*kinds):
        peer = next((name for name in names if name in each["peers"]), None)
        if peer is None:
            continue
        seconds = each["peers"][peer]
        ratios.append(seconds / each["seconds"])
        times_ = microseconds(each["seconds"]), microseconds(seconds)
        rows.append([each["name"], times_[0], peer, times_[1], times(ratios[-1])])
    rows.append(["geometric mean", "", "", "", times(mean(ratios))])
    return table(["case", "braid, µs", "peer", "peer, µs", "faster by"], rows)


def products() -> str:
    """Matrix products beside cuBLAS."""
    return beside(["product", "linear"], ["cuBLAS"])


def attention() -> str:
    """Attention beside PyTorch's choice of cuDNN and FlashAttention."""
    return beside(["attention"], ["torch"])


def convolutions() -> str:
    """Convolutions beside cuDNN."""
    return beside(["conv", "depthwise"], ["cuDNN"])


def selection() -> str:
    """TopK beside PyTorch."""
    return beside(["top 8", "top 50", "top 100", "top 256"], ["torch"])


def moving() -> str:
    """Return a table of memory-bound cases, beside a copy of as many bytes and PyTorch."""
    rows = [
        [
            each["name"],
            microseconds(each["seconds"]),
            times(each["peers"]["copy"] / each["seconds"]),
            times(each["peers"]["torch"] / each["seconds"]),
        ]
        for each in cases(*MOVING, "resize")
    ]
    return table(["case", "braid, µs", "faster than a copy of as many bytes", "than PyTorch"], rows)


def machine_code() -> str:
    """Return a table of a warp's instructions in the main loop of matmuls, compared with
    CUTLASS."""
    rows = [
        [
            each["case"],
            each["maker"],
            str(each["registers"]),
            str(each["loop"]["tensor"]),
            str(each["loop"]["instructions"]),
            number(each["loop"]["flops_per_instruction"], 4),
        ]
        for each in read("gpu_static")
    ]
    header = "tile", "by", "registers", "tensor instructions", "all instructions"
    return table([*header, "FLOPs per instruction"], rows)


def shapes() -> str:
    """Random shapes on the emulator, beside f64."""
    rows = [
        [
            FAMILIES.get(name, name.replace("_", " ")),
            str(each["cases"]),
            str(each["cases"] - each["failed"]),
            f"{each['largest_share_of_bound']:.2f}",
        ]
        for name, each in read("gpu_shapes")["families"].items()
    ]
    return table(["kernels", "shapes", "right", "largest error ÷ bound"], rows)


def replay() -> str:
    """Kernels and models of the tests that ran on a GPU."""
    found = read("gpu_replay")
    rows: list[list[str]] = []
    for how in ("machine code", "PTX that the driver assembles"):
        records: list[dict[str, Any]] = found[how]
        right = sum(each["right"] for each in records)
        largest = max(each["of_allowed"] or 0 for each in records)
        rows.append([how, str(len(records)), str(right), f"{largest:.2f}"])
    return table(["code", "cases", "right", "largest error ÷ bound"], rows)


def estimates() -> str:
    """Errors of the estimate of HLS designs."""
    found = read("fpga")
    rows: list[list[str]] = []
    for half, text in (("reported", "not fitted"), ("fitted", "fitted")):
        for key, what in (
            ("error", "braid's cycles"),
            ("vitis_error", "the tool's own cycles"),
            ("dsp_error", "braid's DSPs"),
        ):
            each = found[f"{half}: {key}"]
            shares = [percent(each[name]) for name in ("mean", "median", "p90", "most")]
            rows.append([f"{each['designs']}, {text}", what, *shares])
    return table(["designs", "error of", "mean", "median", "90 % below", "worst"], rows)


def polybench() -> str:
    """Designs for PolyBench kernels compared with published ones."""
    rows = [
        [
            each["kernel"],
            f"{each['cycles']:,}",
            str(each["dsps"]),
            f"{each['published cycles']:,}",
            str(each["published dsps"]),
            times(1 / each["ratio"]),
            f"{each['bound']:,}",
        ]
        for each in read("polybench")
    ]
    header = "kernel", "cycles", "DSPs", "published cycles", "DSPs", "faster by", "bound, cycles"
    return table(header, rows)


def orders() -> str:
    """Orders on a simulated chip."""
    rows = [
        [
            title(each["model"]),
            str(each["ops"]),
            microseconds(each["found"]),
            times(each["import"] / each["found"]),
            times(min(each[name] for name in LISTS) / each["found"]),
            times(each["found"] / each["lower_bound"]),
        ]
        for each in read("order_models")
    ]
    header = "model", "ops", "found, µs", "faster than the file's order", "than list scheduling"
    return table([*header, "time ÷ lower bound"], rows)


def planted() -> str:
    """Return results on generated instances of the solvers whose answers are known."""
    problems = {
        "packing without waste": ("packing", "buffers"),
        "orders that fit a budget": ("remat", "ops"),
        "strategies": ("strategy", "nodes"),
        "strategies with a memory limit": ("strategy with a memory limit", "nodes"),
    }
    rows: list[list[str]] = []
    for problem, (key, unit) in problems.items():
        found: list[dict[str, Any]] = read("planted")[key]
        over = [each["over"] for each in found]
        best = sum(value is not None and value < 1e-6 for value in over)
        most = "not found" if None in over else f"{max(over):.3f} %"
        sizes = sorted({each[unit] for each in found})
        slowest = max(each["cpu_seconds"] for each in found)
        shown = f"{sizes[0]:,} to {sizes[-1]:,} {unit}"
        rows.append([problem, shown, f"{best} of {len(found)}", most, number(slowest, 2)])
    header = "problem", "size", "optimal", "most above the optimum", "most CPU seconds"
    return table(header, rows)
