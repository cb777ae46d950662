"""Reading `benchmarks/results/*.json`, and writing numbers and tables of Markdown."""

import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"

MODELS = {
    "resnet50": "ResNet-50",
    "resnet18": "ResNet-18",
    "mobilenet_v2": "MobileNetV2",
    "squeezenet": "SqueezeNet",
    "densenet121": "DenseNet-121",
    "inception_v1": "Inception v1",
    "unet": "U-Net",
    "bert_base": "BERT-base, 128 tokens",
    "gpt2": "GPT-2, 64 tokens",
    "vit_base": "ViT-base",
    "shufflenet": "ShuffleNet",
    "nasnet_like": "NASNet-like",
    "randwire": "RandWire",
    "levit_128s": "LeViT-128S, 224 × 224",
    "levit_256": "LeViT-256, 224 × 224",
    "maxvit_nano": "MaxViT-nano, 256 × 256",
    "maxvit_tiny_tf": "MaxViT-tiny, 224 × 224",
    "tiny_vit_5m": "TinyViT-5M, 224 × 224",
    "gpt_neox_32": "GPT-NeoX, 6 layers, heads of 32",
}
"""The titles in tables of the models in the results."""


@cache
def read(name: str) -> Any:
    """Return the contents of `benchmarks/results/NAME.json`."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def title(model: str) -> str:
    """Return what a model is called in tables."""
    return MODELS.get(model, model.replace("_", " "))


def number(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, and commas between thousands."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def times(ratio: float) -> str:
    """Return how many times as fast something is."""
    return f"{ratio:.2f}×"


def milliseconds(seconds: float) -> str:
    """Return seconds as a number of milliseconds."""
    return number(seconds * 1e3)


def microseconds(seconds: float) -> str:
    """Return seconds as a number of microseconds."""
    return number(seconds * 1e6)


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    return geometric_mean(list(ratios))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown, without an empty line behind it."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_model(results: Iterable[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return records by model and runtime, in the order of the file."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for each in results:
        found.setdefault(each["model"], {})[each["runtime"]] = each
    return found


def best_peer(runtimes: dict[str, dict[str, Any]], key: str = "median") -> float | None:
    """Return the seconds of the faster one of ONNX Runtime and OpenVINO; None without either."""
    peers = [runtimes[name][key] for name in ("ort", "openvino") if name in runtimes]
    return min(peers, default=None)
