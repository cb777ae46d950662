"""Pooling, and reductions of all spatial dims, as windows."""

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import BlockArgument

from braid.analysis.nests.pointwise import pointwise
from braid.analysis.nests.windows import RANKS, WindowOp
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import is_byte
from braid.dialects.braid.reduction import ReduceOp, neutral_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.windows import Windows


def pooling(group: FusedOp, *, is_open: bool = False) -> WindowOp | None:
    """Return the pooling of the group: of f32, f64 or bytes, unpadded.

    Static, or with any number of images if the group `is_open`, and for a pooling of any extents. A
    reduction of all dims but images and channels has a window as large as the image.
    """
    ops = [op for op in group.body.block.ops if isinstance(op, PoolOp | ReduceOp)]
    if len(ops) != 1 or not isinstance(x := ops[0].input, BlockArgument):
        return None
    op, kind, shape = ops[0], element_type_of(x), shape_of(x)
    if not (kind in (f32, f64) or is_byte(kind)) or len(shape) not in RANKS:
        return None
    may_be_open = is_open and isinstance(op, PoolOp)
    spatial = [extent for extent in shape[2:] if not (may_be_open and extent == DYNAMIC)]
    if min([shape[1], *spatial]) <= 0:
        return None
    if isinstance(op, PoolOp):
        windows, combine, neutral = op.windows, op.combine, op.padding_value
    else:
        spatial = shape[2:]
        ones, zeros = (1,) * len(spatial), (0,) * len(spatial)
        windows, combine = Windows(spatial, ones, ones, zeros, zeros), op.kind.data
        neutral = neutral_of(combine, op.result_type().element_type)
        if sorted(op.dims.get_values()) != list(range(2, len(shape))):
            return None
    points = pointwise(group, op, is_open=is_open)
    if windows.is_padded or points is None or (op.accumulator and x in points.leaves):
        return None
    return WindowOp(op.output, windows, x, points, combine, neutral, op.accumulator)
