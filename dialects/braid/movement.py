"""Ops that move elements without computing: transpose, broadcast, reshape, slice, pad, concat."""

from braid.dialects.braid.shaping import BroadcastOp, ReshapeOp, TransposeOp
from braid.dialects.braid.slicing import ConcatOp, PadOp, SliceOp

__all__ = ["BroadcastOp", "ConcatOp", "PadOp", "ReshapeOp", "SliceOp", "TransposeOp"]
