"""The braid dialect: tensor ops with layouts in their types, and regions for compiler decisions."""

from xdsl.ir import Dialect

from braid.dialects.braid.attributes import BackendAttr, LayoutAttr
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, IotaOp, ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.placement import ChannelOp, CopyOp, ReorderOp
from braid.dialects.braid.regions import ClusterOp, FusedOp, YieldOp

Braid = Dialect(
    "braid",
    [
        *ELEMENTWISE.values(),
        BroadcastOp,
        ChannelOp,
        ClusterOp,
        ConcatOp,
        ConstantOp,
        ConvOp,
        CopyOp,
        FusedOp,
        IotaOp,
        MatmulOp,
        PadOp,
        ParameterOp,
        ReorderOp,
        ReshapeOp,
        SliceOp,
        TransposeOp,
        YieldOp,
    ],
    [BackendAttr, BufferAttr, LayoutAttr],
)
