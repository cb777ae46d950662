"""Writes the tables and figures of the documentation from `benchmarks/results/*.json`.

    python -m benchmarks.report [--check]

A table stands in a page between `<!-- table: NAME -->` and `<!-- end of table -->`; what is between
them is replaced. With `--check` nothing is written, and the exit status is 1 if anything differs.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.report import conformance, cpu, others
from benchmarks.report.figure import chart
from benchmarks.report.results import read, title

ROOT = Path(__file__).parents[2]
TABLES: dict[str, Callable[[], str]] = {
    "cpu models": cpu.models,
    "cpu peers": cpu.peers_alone,
    "cpu types": partial(cpu.types, "variants"),
    "cpu types with AMX": partial(cpu.types, "variants_amx"),
    "cpu attention models": partial(cpu.models, "models_attention"),
    "cpu attention patterns": cpu.attention_patterns,
    "cpu decoding": cpu.decoding,
    "cpu decoders": cpu.decoders,
    "cpu kernels": cpu.kernels,
    "cpu kernels with AMX": partial(cpu.kernels, "kernels_amx"),
    "cpu operators": cpu.operators,
    "cpu fourier": cpu.fourier,
    "cpu open models": cpu.open_models,
    "cpu data sizes": cpu.data_sizes,
    "cpu sessions": cpu.sessions,
    "compile time": cpu.compile_time,
    "tuning": cpu.tuning,
    "search": cpu.search,
    "gpu models": others.models,
    "gpu products": others.products,
    "gpu attention": others.attention,
    "gpu convolutions": others.convolutions,
    "gpu moving": others.moving,
    "gpu selection": others.selection,
    "gpu machine code": others.machine_code,
    "gpu shapes": others.shapes,
    "gpu replay": others.replay,
    "fpga estimates": others.estimates,
    "fpga polybench": others.polybench,
    "npu orders": others.orders,
    "planted": others.planted,
    "conformance": conformance.suites,
}
_TABLE = re.compile(r"<!-- table: (.+?) -->\n.*?<!-- end of table -->", re.DOTALL)


def filled(text: str) -> str:
    """Return a page with each of its tables made anew. Raises KeyError for an unknown one."""

    def replaced(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n\n{TABLES[match[1]]()}\n\n<!-- end of table -->"

    return _TABLE.sub(replaced, text)


def figures() -> Mapping[str, str]:
    """Return the charts by the names of their files."""
    fast = {title(model): ratio for model, ratio in cpu.speedups("models").items()}
    designs = {each["kernel"]: 1 / each["ratio"] for each in read("polybench")}
    orders = {title(e["model"]): e["import"] / e["found"] for e in read("order_models")}
    return {
        "benchmarks-cpu.svg": chart(
            "Whole models in f32 on one CPU thread",
            "times as fast as the better one of ONNX Runtime and OpenVINO",
            fast,
        ),
        "benchmarks-gpu.svg": chart(
            "Whole models on an NVIDIA H200, batch 1",
            "times as fast as torch.compile with CUDA graphs",
            others.model_speedups(),
        ),
        "benchmarks-fpga.svg": chart(
            "PolyBench kernels in f32, at most 220 DSPs, estimated",
            "times as fast as the published designs",
            designs,
        ),
        "benchmarks-npu.svg": chart(
            "Models on the simulated chip npu-small",
            "times as fast as in the order of the model's file",
            orders,
        ),
    }


def pages() -> list[Path]:
    """Return the pages that have tables."""
    benchmarks = sorted((ROOT / "docs" / "benchmarks").glob("*.md"))
    others = [ROOT / "docs" / f"{name}.md" for name in ("conformance", "language-models")]
    return [ROOT / "README.md", *others, *benchmarks]


def contents() -> dict[Path, str]:
    """Return what each page and figure should hold."""
    texts = {path: filled(path.read_text(encoding="utf-8")) for path in pages()}
    pictures = ROOT / "docs" / "pictures"
    return texts | {pictures / name: text for name, text in figures().items()}


def stale() -> list[Path]:
    """Return the files that differ from the results."""
    return [
        path
        for path, text in contents().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main() -> None:
    """Write the files that differ, or with `--check` name them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    differing = stale()
    for path in differing:
        print(path.relative_to(ROOT))
        if not check:
            path.write_text(contents()[path], encoding="utf-8")
    sys.exit(1 if check and differing else 0)


if __name__ == "__main__":
    main()
