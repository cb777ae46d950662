"""The braid dialect: tensor ops with layouts in their types, and regions for compiler decisions."""

from xdsl.ir import Dialect

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.attributes import LayoutAttr, TargetAttr
from braid.dialects.braid.box_selection import NonMaxSuppressionOp
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, IotaOp, ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.decided_sizes import DecideSizesOp
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.failure import FailOp
from braid.dialects.braid.folding import FoldOp
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.launch import AwaitOp, LaunchOp, TokenType
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.placement import CopyOp, ReorderOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import QUANTIZATION
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.settings import SettingsAttr
from braid.dialects.braid.sized_ops import (
    SizedPadOp,
    SizedSliceOp,
    SizedTopKOp,
    SizeValuesOp,
)
from braid.dialects.braid.sizes import SizedLayoutAttr, SizesAttr, SymbolAttr
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.dialects.braid.tree_ensemble import TreeEnsembleOp

Braid = Dialect(
    "braid",
    [
        *ELEMENTWISE.values(),
        *QUANTIZATION,
        ArgReduceOp,
        AwaitOp,
        BroadcastOp,
        ConcatOp,
        ConstantOp,
        ConvOp,
        ConvTransposeOp,
        CopyOp,
        DecideSizesOp,
        FailOp,
        FftOp,
        FoldOp,
        FusedOp,
        GatherElementsOp,
        GatherNdOp,
        GatherOp,
        IotaOp,
        LaunchOp,
        LayerNormOp,
        MatmulOp,
        NonMaxSuppressionOp,
        OpaqueOp,
        PadOp,
        ParameterOp,
        PoolOp,
        ReduceOp,
        ReorderOp,
        ReshapeOp,
        ResizeOp,
        ScanOp,
        ScatterElementsOp,
        ScatterNdOp,
        SizeValuesOp,
        SizedPadOp,
        SizedSliceOp,
        SizedTopKOp,
        SliceOp,
        SoftmaxOp,
        TopKOp,
        TransposeOp,
        TreeEnsembleOp,
        YieldOp,
    ],
    [
        LayoutAttr,
        SizesAttr,
        SizedLayoutAttr,
        SymbolAttr,
        BufferAttr,
        TargetAttr,
        SettingsAttr,
        TokenType,
    ],
)
