"""Braid's own kernel families for GPUs."""

from collections.abc import Sequence

from braid.lowering.gpu.kernels.attention import AttentionFamily
from braid.lowering.gpu.kernels.conv import ConvFamily
from braid.lowering.gpu.kernels.depthwise import DepthwiseFamily
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.kernels.hopper_attention import HopperAttentionFamily
from braid.lowering.gpu.kernels.hopper_conv import HopperConvFamily
from braid.lowering.gpu.kernels.hopper_gemm import HopperGemmFamily
from braid.lowering.gpu.kernels.scan import ScanFamily
from braid.lowering.gpu.kernels.top_k import TopKFamily
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine


def gpu_families(
    machine: Machine, installed: Sequence[KernelFamily] = ()
) -> tuple[KernelFamily, ...]:
    """Return all families for `machine`, in order of preference: first those of other packages."""
    own = (
        HopperAttentionFamily(machine),
        AttentionFamily(machine),
        HopperGemmFamily(machine),
        GemmFamily(machine),
        DepthwiseFamily(machine),
        HopperConvFamily(machine),
        ConvFamily(machine),
        TopKFamily(machine),
        ScanFamily(machine),
    )
    return (*installed, *own)
