"""Non-maximum suppression: the best boxes of each class that overlap none before."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr, TensorType, f32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    TensorOp,
    element_type_of,
    extents_of,
    require,
    set_result_types,
    tensor_type,
)
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_facts import may_be_at_most, may_equal
from braid.support.sizes.expression import Extent

MOST_BOXES = (1 << 31) - 1
"""Numbers of boxes are i32 in kernels."""


@irdl_op_definition
class NonMaxSuppressionOp(TensorOp):
    """The best boxes of each class, none of which overlaps a better one too much.

    Operands, all of f32: boxes `[batch, n, 4]`, two opposite corners each, or with `centered` the
    center, width and height; scores `[batch, classes, n]`; `overlap` and `least`, `[1]` each. The
    boxes of a class are looked at from the highest score down, of equal ones the first; a box is
    taken if its score is above `least` (if that is NaN, whatever it is) and its intersection over
    union with each box taken before is at most `overlap`.
    Results: the numbers of the boxes that are taken, `[batch, classes, most]` of i64, with 0 after
    the last one, and how many these are, `[batch, classes]` of i64. `most` is the extent of the
    result. Fails verification for shapes and types that do not fit.

    ```mlir
    %boxes, %count = braid.non_max_suppression %b, %s, %overlap, %least {centered = false}
        : (tensor<1x9x4xf32>, tensor<1x2x9xf32>, tensor<1xf32>, tensor<1xf32>) ->
        (tensor<1x2x5xi64>, tensor<1x2xi64>)
    ```
    """

    name = "braid.non_max_suppression"

    boxes = operand_def(TensorType)
    scores = operand_def(TensorType)
    overlap = operand_def(TensorType)
    least = operand_def(TensorType)
    centered = attr_def(BoolAttr)
    indices = result_def(TensorType)
    counts = result_def(TensorType)

    @staticmethod
    def get(
        boxes: SSAValue | Operation,
        scores: SSAValue | Operation,
        overlap: SSAValue | Operation,
        least: SSAValue | Operation,
        most: Extent,
        *,
        centered: bool = False,
    ) -> "NonMaxSuppressionOp":
        """Build the op that takes at most `most` boxes of each class."""
        values = [SSAValue.get(value) for value in (boxes, scores, overlap, least)]
        op = NonMaxSuppressionOp.create(
            operands=values, attributes={"centered": BoolAttr.from_bool(centered)}
        )
        lines = extents_of(values[1])[:2]
        types = [tensor_type(i64, [*lines, most]), tensor_type(i64, lines)]
        set_result_types(op, types)
        op.checked_result_types()
        return op

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the types of the results; the first result is the number of boxes that are
        taken."""
        for value in self.operands:
            require(element_type_of(value) == f32, "operands are not all of f32")
        boxes, scores = extents_of(self.boxes), extents_of(self.scores)
        is_fit = len(boxes) == 3 and may_equal(boxes[2], 4)
        require(is_fit, f"boxes have shape {list(boxes)}, not [b, n, 4]")
        require(
            len(scores) == 3 and may_equal(scores[0], boxes[0]) and may_equal(scores[2], boxes[1]),
            f"scores have shape {list(scores)} for boxes {list(boxes)}, expected [b, classes, n]",
        )
        require(may_be_at_most(scores[2], MOST_BOXES), f"{scores[2]} boxes are too many")
        for value in (self.overlap, self.least):
            require(extents_of(value) == (1,), "overlap and least have shapes other than [1]")
        result = extents_of(self.indices)
        require(len(result) == 3, f"the first result has rank {len(result)}, expected 3")
        require(
            may_be_at_most(result[2], scores[2]),
            f"at most {result[2]} boxes are taken, of {scores[2]} that there are",
        )
        return [tensor_type(i64, [*scores[:2], result[2]]), tensor_type(i64, scores[:2])]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the indices of the selected boxes, best first, and their counts."""
        boxes, scores, overlap, least = operands
        corners = _corners(boxes, centered=bool(self.centered.value.data))
        most = self.indices.type.get_shape()[2]
        indices = np.zeros((*scores.shape[:2], most), np.int64)
        counts = np.zeros(scores.shape[:2], np.int64)
        for batch, kind in np.ndindex(*scores.shape[:2]):
            taken = _selected(
                corners[batch], scores[batch, kind], most, overlap.item(), least.item()
            )
            indices[batch, kind, : len(taken)], counts[batch, kind] = taken, len(taken)
        return indices, counts


def _corners(boxes: Array, *, centered: bool) -> Array:
    """Return boxes `[…, 4]` as least and greatest corner."""
    if centered:
        center, half = boxes[..., :2], boxes[..., 2:] / np.float32(2)
        return np.concatenate([center - half, center + half], axis=-1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _selected(corners: Array, scores: Array, most: int, overlap: float, least: float) -> list[int]:
    """Return the boxes of one class, best first."""
    chosen: list[int] = []
    for box in np.argsort(-scores, kind="stable").tolist():
        if len(chosen) >= most or (not np.isnan(least) and not scores[box] > least):
            break
        if not (_overlaps(corners[box], corners[chosen]) > np.float32(overlap)).any():
            chosen.append(box)
    return chosen


def _overlaps(box: Array, others: Array) -> Array:
    """Return the intersection over union of a box with each of the others; 0 for empty ones."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    area, areas = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = area + areas - common
    is_real = (area > 0) & (areas > 0) & (union > 0)
    return np.where(is_real, common / np.where(is_real, union, 1), 0)
