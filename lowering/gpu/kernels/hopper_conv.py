"""Convolutions of single points on sm_90a: channels last they are plain products."""

from dataclasses import dataclass
from math import prod

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.kernels.contraction.problem import Number
from braid.lowering.gpu.kernels.conv import ConvFamily
from braid.lowering.gpu.kernels.hopper_gemm import (
    ARCHITECTURE,
    LEAST,
    WITHOUT,
    HopperGemmCandidate,
)
from braid.targets.machines.machine import Machine

_CHUNK = 16
"""Bytes that lines of operands and results are multiples of."""


@dataclass(frozen=True)
class HopperConvFamily:
    """`braid.conv` of windows of one point without strides, of 16-bit floats or bytes.

    All else is as in `ConvFamily` and `HopperGemmFamily`.
    """

    machine: Machine
    name: str = "gpu-hopper-conv"
    version: int = 1

    def match(self, group: FusedOp) -> HopperGemmCandidate | None:
        """As `ConvFamily`, without what is no product of matrices of some size."""
        plain = ConvFamily(self.machine).match(group)
        if self.machine.cpu != ARCHITECTURE or plain is None:
            return None
        op = plain.found.op
        assert isinstance(op, ConvOp)
        window = shape_of(op.weight)[2:]
        batches, rows, columns, depth = plain.extents()
        if prod(window) > 1 or set(op.strides.get_values()) != {1} or batches > 1:
            return None
        if plain.found.number in WITHOUT or min(rows, columns, depth) < LEAST:
            return None
        element = 1 if plain.found.number is Number.S8 else 2
        if depth * element % _CHUNK or columns * element % _CHUNK:
            return None
        return HopperGemmCandidate(group, self.machine, plain.found, plain)
