"""The kernel families of the CPU, in order of preference among equals."""

from braid.lowering.cpu.kernels.border import BorderFamily
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.generic import GenericFamily
from braid.lowering.cpu.kernels.movement import MovementFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.pad import PadFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from braid.lowering.cpu.kernels.tiled import TiledFamily
from braid.targets.kernels.kernel_family import KernelFamily


def cpu_families() -> tuple[KernelFamily, ...]:
    """One of each; the cheapest that takes a group makes its kernel, the first among equals."""
    return (
        BorderFamily(),
        GemmFamily(),
        ConvDepthwiseFamily(),
        ConvDirectFamily(),
        PadFamily(),
        PoolFamily(),
        NormalizationFamily(),
        MovementFamily(),
        ElementwiseFamily(),
        TiledFamily(),
        GenericFamily(),
    )
