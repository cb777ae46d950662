"""Imported by the server of tools: does once what nearly every tool begins with.

All passes are imported, and a module is read and printed, so that xDSL has processed the
definitions of its ops.
"""

from pathlib import Path

from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.registry import braid_passes
from braid.universe import make_context

_MODULE = Path(__file__).parent / "passes" / "canonicalize" / "tensors.mlir"


def _warm_up() -> None:
    for load in braid_passes().values():
        load()
    module = parse_mlir(make_context(), _MODULE.read_text(encoding="utf-8"), _MODULE.name).module
    module.verify()
    str(module)


_warm_up()
