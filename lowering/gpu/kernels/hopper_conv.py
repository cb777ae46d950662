"""Convolutions of single points on sm_90a: channels last they are plain products."""

from dataclasses import dataclass
from math import prod

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.kernels.conv import ConvFamily
from braid.lowering.gpu.kernels.hopper_gemm import LEAST, HopperGemmCandidate, hopper_candidate
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class HopperConvFamily(KernelFamily):
    """`braid.conv` with windows of one point and no strides, on 16-bit floats or bytes.

    All else is as in `ConvFamily` and `HopperGemmFamily`.
    """

    machine: Machine
    name: str = "gpu-hopper-conv"
    version: int = 1

    def match(self, group: FusedOp) -> HopperGemmCandidate | None:
        """Match as `ConvFamily` does, without what is no matmul of some size."""
        plain = ConvFamily(self.machine).match(group)
        if plain is None:
            return None
        op = plain.found.op
        assert isinstance(op, ConvOp)
        batches, *_ = plain.extents()
        single = prod(shape_of(op.weight)[2:]) == 1 and set(op.strides.get_values()) == {1}
        return hopper_candidate(plain, LEAST) if single and batches == 1 else None
