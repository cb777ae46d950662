"""`expand-padding`: windows that reach over the edge become windows on a padded tensor."""

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import integers, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.names import derive_names
from braid.dialects.braid.pooling import PoolOp
from braid.targets.machines.resolve import runs_on, target_of


def _padding_value(op: ConvOp | PoolOp) -> float | int | bool:
    return op.padding_value if isinstance(op, PoolOp) else 0


def _expand(op: ConvOp | PoolOp) -> None:
    windows = op.windows
    batch_and_channel = (0, 0)
    pad = PadOp.get(
        op.input,
        (*batch_and_channel, *windows.pad_low),
        (*batch_and_channel, *windows.pad_high),
        _padding_value(op),
    )
    derive_names(pad, op, "pad")
    pad.location = op.location
    Rewriter.insert_op(pad, InsertPoint.before(op))
    op.operands[0] = pad.output
    none = integers([0] * (len(shape_of(op.input)) - 2))
    op.attributes |= {"pad_low": none, "pad_high": none}


def _note_zeros(op: ConvOp) -> None:
    """Record which elements of the input are zeros of its padding."""
    zeros = np.zeros((2, len(shape_of(op.input))), np.int64)
    value = op.input
    while isinstance(value.owner, PadOp) and value.owner.value.value.data == 0:
        zeros += value.owner.low.get_values(), value.owner.high.get_values()
        value = value.owner.input
    if zeros[:, 2:].any():
        low, high = zeros[:, 2:].tolist()
        op.attributes |= {"zeros_low": integers(low), "zeros_high": integers(high)}


@dataclass(frozen=True)
class ExpandPaddingPass(ModulePass):
    """Puts the padding of windows into `braid.pad`, so that kernels have no edge cases.

    In: any module. Out: no `braid.conv` or `braid.pool` has a padding. The pad is a separate group,
    or part of the group that makes the tensor, if a kernel can write it padded. A convolution says
    how many zeros there are around its input, since kernels may leave out products with these. With
    `devices` only windows of ops on these are expanded.

    ```mlir
    %y = braid.conv %x, %w {pad_low = array<i64: 1, 1>, …}
    // %p = braid.pad %x {low = array<i64: 0, 0, 1, 1>, …}
    // %y = braid.conv %p, %w {pad_low = array<i64: 0, 0>, …, zeros_low = array<i64: 1, 1>, …}
    ```
    """

    name = "expand-padding"

    target: str | None = None
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand the padding of every window in `op`."""
        target = target_of(op, self.target)
        windows = [inner for inner in op.walk() if isinstance(inner, ConvOp | PoolOp)]
        for window in windows:
            if not runs_on(window, self.devices, target):
                continue
            if window.windows.is_padded:
                _expand(window)
            if isinstance(window, ConvOp):
                _note_zeros(window)
