"""Which function imports which ONNX op, by opset."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

from xdsl.ir import SSAValue

from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.node import Node
from braid.support.compile_scope import note_extension
from braid.support.entry_points import entry_points_of
from braid.support.errors import BraidError

Importer = Callable[[Builder, Node], SSAValue | Sequence[SSAValue]]
"""Builds what a node computes; returns its outputs in order (a single one may stand alone)."""

_GROUPS = (
    "activation",
    "control_flow",
    "convolution",
    "einsum",
    "elementwise",
    "fourier",
    "indexing",
    "linear_algebra",
    "movement",
    "ngrams",
    "normalization",
    "optimizers",
    "pooling",
    "quantization",
    "recurrent",
    "reduction",
    "resampling",
    "sampling",
    "scan",
    "selection",
    "shape",
    "tree_ensemble",
)

ENTRY_POINTS = "braid.onnx_importers"
"""Group of the entry points of other packages: modules whose importers register themselves."""

_importers: dict[tuple[str, str], list[tuple[int, Importer]]] = {}


def importer(*op_types: str, since: int = 1, domain: str = "") -> Callable[[Importer], Importer]:
    """Registers a function as the importer of ops of a domain, from its opset `since` on."""

    def register(function: Importer) -> Importer:
        note_extension(function.__module__)
        for op_type in op_types:
            versions = _importers.setdefault((domain, op_type), [])
            versions.append((since, function))
            versions.sort(key=lambda version: version[0])
        return function

    return register


def find_importer(op_type: str, opset: int, domain: str = "") -> Importer | None:
    """The newest importer of the op that is not newer than `opset`, None if there is none."""
    _load_groups()
    versions = _importers.get((domain, op_type), [])
    found = [function for since, function in versions if since <= opset]
    return found[-1] if found else None


@cache
def _load_groups() -> None:
    for group in _GROUPS:
        import_module(f"braid.frontends.onnx.ops.{group}")
    for entry in entry_points_of(ENTRY_POINTS):
        try:
            entry.load()
        except (ImportError, AttributeError) as error:
            raise BraidError(
                f"entry point '{entry.name}' of '{ENTRY_POINTS}' cannot be loaded: {error}",
                hint=f"it is '{entry.value}'; mend or uninstall the package that has it",
            ) from error
