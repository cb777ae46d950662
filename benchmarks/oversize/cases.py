"""The models of the oversize suite: small inputs and results, and a huge tensor in between."""

from typing import Protocol

from onnx import ModelProto

from benchmarks.oversize import (
    attention,
    cross_entropy,
    differences,
    distances,
    one_hot,
    unfold,
    upsampling,
)
from benchmarks.oversize.case import Array, Case, Dims, Reference


class _Model(Protocol):
    """The interface of a module of this package."""

    def build(self, dims: Dims) -> ModelProto: ...
    def make_inputs(self, dims: Dims) -> list[Array]: ...

    @property
    def compute_in_pieces(self) -> Reference: ...


def _case(name: str, model: _Model, *, huge: Dims, fits: Dims, small: Dims) -> Case:
    functions = (model.build, model.make_inputs, model.compute_in_pieces)
    return Case(name, *functions, huge=huge, fits=fits, small=small)


CASES = (
    _case(
        "attention",
        attention,
        huge={"heads": 12, "length": 8192, "depth": 64},
        fits={"heads": 4, "length": 2048, "depth": 64},
        small={"heads": 2, "length": 150, "depth": 16},
    ),
    _case(
        "pairwise-distances",
        distances,
        huge={"rows": 40_000, "columns": 40_000, "depth": 32},
        fits={"rows": 8_000, "columns": 8_000, "depth": 32},
        small={"rows": 90, "columns": 130, "depth": 8},
    ),
    _case(
        "one-hot",
        one_hot,
        huge={"tokens": 16_384, "vocabulary": 32_000, "width": 64},
        fits={"tokens": 4_096, "vocabulary": 16_000, "width": 64},
        small={"tokens": 70, "vocabulary": 50, "width": 24},
    ),
    _case(
        "differences",
        differences,
        huge={"points": 16_384, "centres": 512, "depth": 128},
        fits={"points": 4_096, "centres": 256, "depth": 128},
        small={"points": 45, "centres": 20, "depth": 30},
    ),
    _case(
        "cross-entropy",
        cross_entropy,
        huge={"tokens": 8_192, "vocabulary": 50_257, "width": 64},
        fits={"tokens": 2_048, "vocabulary": 16_000, "width": 64},
        small={"tokens": 70, "vocabulary": 120, "width": 16},
    ),
    _case(
        "upsampling",
        upsampling,
        huge={"channels": 32, "filters": 4, "extent": 80},
        fits={"channels": 16, "filters": 4, "extent": 56},
        small={"channels": 3, "filters": 2, "extent": 9},
    ),
    _case(
        "unfold",
        unfold,
        huge={"channels": 32, "filters": 16, "extent": 1_280},
        fits={"channels": 32, "filters": 16, "extent": 480},
        small={"channels": 5, "filters": 7, "extent": 12},
    ),
)
"""All models of the suite."""
