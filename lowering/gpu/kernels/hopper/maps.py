"""Tensor maps of the operands and the result of a product, where they can have one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import Contraction, Operand, Terms
from braid.lowering.gpu.kernels.hopper.tiles import LINE
from braid.lowering.gpu.launch.launches import TensorMap

_CHUNK = 16
"""Bytes that strides are multiples of."""
_MOST_BATCHES = 3


@dataclass(frozen=True)
class Boxes:
    """Boxes of a tensor with dims (inner, outer, batches), `line` bytes along the inner one."""

    number: str
    bytes: int
    inner: int
    outer: int
    outer_stride: int
    batches: Terms
    line: int = LINE

    @staticmethod
    def of(number: str, bytes: int, inner: Terms, outer: Terms, batches: Terms) -> "Boxes | None":
        """Return the boxes; None if a tensor map cannot have these strides."""
        if len(inner) > 1 or len(outer) > 1 or len(batches) > _MOST_BATCHES:
            return None
        (extent, step), (lines, stride) = (*inner, (1, 1))[0], (*outer, (1, 0))[0]
        strides = [own * bytes for _, own in batches]
        if not outer:
            stride = -(-extent * bytes // _CHUNK) * _CHUNK // bytes
        if step != 1 or any(own % _CHUNK for own in (stride * bytes, *strides)):
            return None
        return Boxes(number, bytes, extent, lines, stride * bytes, batches)

    @staticmethod
    def of_operand(operand: Operand, along_depth: bool) -> "Boxes | None":
        """Return boxes with K inside, or else the operand's own dims."""
        inner, outer = (
            (operand.depths, operand.lines) if along_depth else (operand.lines, operand.depths)
        )
        return Boxes.of(operand.kind.value, operand.bytes, inner, outer, operand.batch)

    @property
    def elements(self) -> int:
        """Elements of a line of a box."""
        return self.line // self.bytes

    def map(self, argument: int, lines: int) -> TensorMap:
        """Return the tensor map for boxes of `lines` lines."""
        dims = [(extent, stride * self.bytes) for extent, stride in self._moving]
        return TensorMap(
            argument,
            self.number,
            (self.inner, self.outer, *(extent for extent, _ in dims)),
            (self.outer_stride, *(stride for _, stride in dims)),
            (self.elements, lines, *(1 for _ in dims)),
            self.line,
        )

    @property
    def _moving(self) -> Sequence[tuple[int, int]]:
        """Batches that are not all in one place, innermost first."""
        return [(extent, stride) for extent, stride in reversed(self.batches) if stride]

    def at(self, code: Code, inner: Value, outer: Value, batch: Value) -> list[Value]:
        """Return the indices of a box."""
        indices = [inner, outer]
        size = prod(extent for extent, _ in self.batches)
        whole, own = size, 1
        for extent, stride in reversed(self.batches):
            if stride:
                index = code.div(batch, own)
                indices.append(code.rem(index, extent) if own * extent < whole else index)
            own *= extent
        return indices


def operand_boxes(problem: Contraction, b_line: int) -> tuple[Boxes, Boxes, bool] | None:
    """Return the boxes of A and B, with rows of `b_line` bytes along columns, and whether B is
    contiguous along K.
    """
    a = Boxes.of_operand(problem.a, True)
    b = Boxes.of_operand(problem.b, True)
    if a is not None and b is not None:
        return a, b, True
    other = Boxes.of_operand(problem.b, False) if problem.b.bytes == 2 else None
    if a is None or other is None or not b_line:
        return None
    return a, replace(other, line=b_line), False
