"""Runs every registered pass on the module of its lit test, in the environment of this process.

Prints the IR that each pass leaves, or what it says is wrong, as JSON by the pass's name.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.context import make_context
from braid.passes.infrastructure.manager import PassCrashError, run_pipeline
from braid.passes.infrastructure.registry import pass_table
from braid.support.diagnostics import handle_diagnostics
from braid.support.errors import BraidError
from braid.tools.opt.files import split_chunks

TESTS = Path(__file__).parents[3]
_RUN = re.compile(r"""RUN: [^|]*(?:%s \| )?%braid-opt\b[^|]* -p (?:'([^']*)'|"([^"]*)"|(\S*))""")
_HLS, _NEGATED = "lowering/fpga/select-hls-schedule.mlir", "tools/braid/Inputs/negated.mlir"
_DESIGN = "convert-braid-to-hls,select-hls-schedule{dsp=5}"
_CHIP = "lowering/npu/select-stream-splits.mlir"
OTHERS = {
    "apply-hls-schedule": (_HLS, f"{_DESIGN},apply-hls-schedule"),
    "convert-braid-to-hls": (_HLS, "convert-braid-to-hls"),
    "lower-floats-to-cpp": (_NEGATED, "lower-floats-to-cpp{output=%t dsp=60}"),
    "lower-hls-to-cpp": (_HLS, f"{_DESIGN},apply-hls-schedule,lower-hls-to-cpp{{output=%t}}"),
    "lower-hls-to-verilog": (
        _HLS,
        f"{_DESIGN},apply-hls-schedule,select-channel-depths,lower-hls-to-verilog{{output=%t}}",
    ),
    "lower-to-instructions": (
        "lowering/npu/simulate.mlir",
        "lower-to-instructions{target=npu-small output=%t}",
    ),
    "measure-order": ("tools/braid/Inputs/diamond.mlir", "measure-order{time-limit=0}"),
    "search-order": ("dialects/braid/target.mlir", "search-order{objective=latency}"),
    "select-channel-depths": (_HLS, f"{_DESIGN},apply-hls-schedule,select-channel-depths"),
    "select-layouts": ("passes/profile/static-trips.mlir", "select-layouts"),
    "select-rematerialization": (
        "passes/rematerialization/Inputs/rematerialization-edges.mlir",
        "select-rematerialization{tensor-threshold=4KiB}",
    ),
    "select-stream-schedules": (_CHIP, "select-stream-schedules{target=%S/tiny.toml}"),
    "tune-schedules": (_NEGATED, "select-fusion,apply-fusion,tune-schedules{time-limit=0}"),
}
"""Modules and pipelines of passes whose lit tests have other names."""


def test_of(name: str) -> tuple[Path, str]:
    """Return a module for the pass of this name, and a pipeline that ends with the pass."""
    if name in OTHERS:
        file, pipeline = OTHERS[name]
        return TESTS / file, pipeline
    (path,) = TESTS.glob(f"*/**/{name}.mlir")
    found = (
        each[1] or each[2] or each[3] for each in _RUN.finditer(path.read_text(encoding="utf-8"))
    )
    return path, next(each for each in found if re.search(rf"(?<![\w-]){name}(?![\w-])", each))


def results_of(name: str, outputs: Path) -> list[str]:
    """Return what the pass leaves of each part of its module."""
    path, pipeline = test_of(name)
    pipeline = pipeline.replace("%S", str(path.parent)).replace("%t", str(outputs / name))
    found: list[str] = []
    text = path.read_text(encoding="utf-8").replace('{cpu = "CPU"}', '{cpu = "znver4"}')
    for chunk in split_chunks(text):
        context = make_context(allow_unregistered=True)
        try:
            module = parse_mlir(context, chunk.text, str(path)).module
            run_pipeline(context, module, pipeline)
            found.append(str(module))
        except (BraidError, PassCrashError) as error:
            found.append(str(error))
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, handle_diagnostics(lambda _: None):
        results = {name: results_of(name, Path(folder)) for name in pass_table()}
        text = json.dumps(results).replace(folder, "")
    Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
