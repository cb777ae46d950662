"""Register the function that imports each ONNX op, by opset."""

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.node import Node
from braid.support.compile_scope import note_extension

Importer = Callable[[Builder, Node], SSAValue | Sequence[SSAValue]]
"""Builds the computation of a node; returns its outputs in order, or its only output."""

_importers: dict[tuple[str, str], list[tuple[int, Importer]]] = {}


def importer(*op_types: str, since: int = 1, domain: str = "") -> Callable[[Importer], Importer]:
    """Register a function as the importer of ops of a domain, from its opset `since` on."""

    def register(function: Importer) -> Importer:
        note_extension(function.__module__)
        for op_type in op_types:
            versions = _importers.setdefault((domain, op_type), [])
            versions.append((since, function))
            versions.sort(key=lambda version: version[0])
        return function

    return register


def registered_ops() -> dict[tuple[str, str], int]:
    """Return the ops that have importers so far, by domain and name, with their first opsets."""
    return {op: versions[0][0] for op, versions in _importers.items()}


def registered_importer(op_type: str, opset: int, domain: str = "") -> Importer | None:
    """Return the newest importer so far of the op that is not newer than `opset`, None for none."""
    versions = _importers.get((domain, op_type), [])
    found = [function for since, function in versions if since <= opset]
    return found[-1] if found else None
