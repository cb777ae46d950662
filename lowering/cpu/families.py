"""Braid's own kernel families for CPUs."""

from collections.abc import Sequence

from braid.lowering.cpu.kernels.amx.products import AMX
from braid.lowering.cpu.kernels.arg_reduce import ArgReduceFamily
from braid.lowering.cpu.kernels.border import BorderFamily
from braid.lowering.cpu.kernels.concat import ConcatFamily
from braid.lowering.cpu.kernels.contraction.floats import FLOATS
from braid.lowering.cpu.kernels.contraction.low_precision import LOW_PRECISION
from braid.lowering.cpu.kernels.contraction.product import ProductArithmetic
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.conv_grouped import ConvGroupedFamily
from braid.lowering.cpu.kernels.conv_winograd import ConvWinogradFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.fft import FftFamily
from braid.lowering.cpu.kernels.fold import FoldFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.gemm_dots import GemmDotsFamily
from braid.lowering.cpu.kernels.gemm_packing import GemmPackingFamily
from braid.lowering.cpu.kernels.generic import GenericFamily
from braid.lowering.cpu.kernels.known_gather import KnownGatherFamily
from braid.lowering.cpu.kernels.movement import MovementFamily
from braid.lowering.cpu.kernels.non_max_suppression import NonMaxSuppressionFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.pad import PadFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from braid.lowering.cpu.kernels.reduction import ReductionFamily
from braid.lowering.cpu.kernels.scan import ScanFamily
from braid.lowering.cpu.kernels.scatter import ScatterFamily
from braid.lowering.cpu.kernels.tiled import TiledFamily
from braid.lowering.cpu.kernels.top_k import TopKFamily
from braid.lowering.cpu.kernels.trees import TreesFamily
from braid.lowering.cpu.library.blas import OpenBlasFamily
from braid.lowering.cpu.library.family import OneDnnFamily
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine

ARITHMETICS: tuple[ProductArithmetic, ...] = (FLOATS, LOW_PRECISION, AMX)
"""The arithmetics of matmuls and convolutions; each has a family of its own for both."""


def cpu_families(
    machine: Machine, installed: Sequence[KernelFamily] = (), *, is_strict: bool = False
) -> tuple[KernelFamily, ...]:
    """Return all families for `machine`, in order of preference: first those of other packages.

    The cheapest family that takes a group makes its kernel, the first one among equals. If
    `is_strict`, results must be those of the model's functions, and a library's approximations are
    not used.
    """
    generic = GenericFamily(machine)
    families = (
        *installed,
        BorderFamily(machine),
        *(GemmFamily(machine, each) for each in ARITHMETICS),
        GemmDotsFamily(machine),
        GemmPackingFamily(machine),
        ConvDepthwiseFamily(machine),
        ConvGroupedFamily(machine),
        *(ConvDirectFamily(machine, each) for each in ARITHMETICS),
        ConvWinogradFamily(machine),
        PadFamily(machine),
        PoolFamily(machine),
        ReductionFamily(machine),
        NormalizationFamily(machine),
        MovementFamily(machine),
        ConcatFamily(machine),
        KnownGatherFamily(machine),
        ScatterFamily(machine),
        ScanFamily(machine),
        TopKFamily(machine),
        NonMaxSuppressionFamily(machine),
        ArgReduceFamily(machine),
        TreesFamily(machine),
        FftFamily(machine),
        FoldFamily(machine),
        ElementwiseFamily(machine),
    )
    tiled = TiledFamily(machine, inner=(*families, generic))
    onednn = OneDnnFamily(machine, is_strict=is_strict)
    return (*families, onednn, OpenBlasFamily(machine), tiled, generic)
