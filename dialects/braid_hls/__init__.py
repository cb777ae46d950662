"""The braid_hls dialect: streams between stages, which are loop nests scheduled by the cycle."""

from xdsl.ir import Dialect

from braid.dialects.braid_hls.body import BODY_OPS
from braid.dialects.braid_hls.design import ChannelOp, DesignOp, OutputOp, StreamType
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import StageOp
from braid.dialects.braid_hls.weights import WeightsOp

BraidHls = Dialect(
    "braid_hls",
    [ChannelOp, DesignOp, OutputOp, PermuteOp, StageOp, WeightsOp, *BODY_OPS],
    [StreamType],
)
"""Everything above."""
