"""Convolution."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float32Type,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, opt_attr_def, result_def

from braid.dialects.braid.accumulation import AccumulatingOp
from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    element_type_of,
    extents_of,
    integer,
    integers,
    require,
    require_summable,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.size_limits import require_extents
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Padding,
    Stage,
    Structure,
    parallel,
    reduction,
)
from braid.dialects.braid.tiling import IterationDim, Reads
from braid.dialects.braid.windows import (
    WindowedOp,
    Windows,
    padded_windows,
    padding_of,
    window_attributes,
)


@irdl_op_definition
class ConvOp(AccumulatingOp, WindowedOp, StructuredOp):
    """Convolution (cross-correlation) over any number of spatial dims.

    Operands: input `[N, C, spatial…]`, weight `[O, C / groups, window…]`.
    Result: `[N, O, (spatial + pad_low + pad_high - dilation · (window - 1) - 1) / stride + 1 …]`.
    The input is padded with zeros. A bias is a separate `braid.add`. Narrow integers, f16 and bf16
    are multiplied and added up in `accumulator`, where it is given.
    `zeros_low` and `zeros_high` are known facts about the input: how many of the first and last
    elements along each spatial dim are zeros. Kernels may leave out products with these.
    Fails verification for other ranks or element types, channel counts that do not fit, or an
    empty result.

    ```mlir
    %y = braid.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pad_low = array<i64: 3, 3>, pad_high = array<i64: 3, 3>, groups = 1 : i64}
        : (tensor<1x3x224x224xf32>, tensor<64x3x7x7xf32>) -> tensor<1x64x112x112xf32>
    ```
    """

    name = "braid.conv"

    input = operand_def(TensorType)
    weight = operand_def(TensorType)
    groups = attr_def(IntegerAttr[IntegerType])
    zeros_low = opt_attr_def(DenseArrayBase[IntegerType])
    zeros_high = opt_attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        weight: SSAValue | Operation,
        *,
        strides: Sequence[int],
        pad_low: Sequence[int],
        pad_high: Sequence[int],
        dilations: Sequence[int],
        groups: int = 1,
        accumulator: IntegerType | Float32Type | None = None,
    ) -> "ConvOp":
        """Build a convolution from plain integers."""
        return ConvOp.on(
            input,
            weight,
            **window_attributes(strides, dilations, pad_low, pad_high),
            groups=IntegerAttr(groups, i64),
            accumulator=accumulator,
        )

    @property
    def windows(self) -> Windows:
        """The window of the convolution."""
        return self.windows_of(shape_of(self.weight)[2:])

    @property
    def zeros(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many first and last elements of each spatial dim are known to be zeros."""
        none = (0,) * (len(shape_of(self.input)) - 2)
        low, high = (
            none if known is None else known.get_values()
            for known in (self.zeros_low, self.zeros_high)
        )
        return low, high

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        x, w, groups = extents_of(self.input), shape_of(self.weight), self.groups.value.data
        require(len(x) >= 3, f"the input has rank {len(x)}, expected at least 3")
        require(len(w) == len(x), f"the weight has rank {len(w)}, expected {len(x)}")
        require(DYNAMIC not in w, f"the weight has shape {list(w)}, expected no open dims")
        require(groups > 0, f"groups is {groups}, expected a positive number")
        element_type = self.sum_type(element_type_of(self.input), element_type_of(self.weight))
        require_summable(element_type)
        require(
            may_equal(x[1], w[1] * groups),
            f"the input has {x[1]} channels, expected {w[1]} · {groups} groups = {w[1] * groups}",
        )
        require(w[0] % groups == 0, f"{w[0]} output channels do not divide by {groups} groups")
        zeros = (*self.zeros[0], *self.zeros[1])
        rank = len(x) - 2
        require(
            len(zeros) == 2 * rank,
            f"zeros have {len(zeros)} entries for {rank} spatial dims, expected {2 * rank}",
        )
        require(min(zeros) >= 0, f"zeros are {zeros}, expected no negative numbers")
        spatial = self.windows.output_shape(x[2:])
        require_extents((*x[:2], *self.windows.padded_shape(x[2:])))
        return [tensor_type(element_type, (x[0], w[0], *spatial))]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return sums of products of windows, group by group.

        Floats of 16 bits are summed in 32 bits.
        """
        x, w = map(self.widened, operands)
        groups = self.groups.value.data
        windows = padded_windows(x, self.windows, 0)
        # Windows as rows [positions, elements]: `np.tensordot` leaves out products with a single 0.
        positions = np.moveaxis(windows, 1, x.ndim - 1)
        rows = (x.shape[0], *positions.shape[1 : x.ndim - 1])
        outputs: list[Array] = []
        for xs, ws in zip(
            np.split(positions, groups, axis=x.ndim - 1), np.split(w, groups, axis=0), strict=True
        ):
            elements = math.prod(ws.shape[1:])
            y = xs.reshape(math.prod(rows), elements) @ ws.reshape(len(ws), elements).T
            outputs.append(np.moveaxis(y.reshape(*rows, len(ws)), -1, 1))
        return (self.narrowed(np.concatenate(outputs, axis=1), operands[0]),)

    def structure(self) -> Structure:
        """Return one stage.

        Its dims are n, o, output spatial…, then input channel of the group and window….
        """
        x, w = shape_of(self.input), shape_of(self.weight)
        result = self.result_type()
        rank, out, win = len(x) - 2, result.get_shape(), self.windows
        d = [AffineExpr.dimension(i) for i in range(3 + 2 * rank)]
        channel = d[2 + rank]
        if (groups := self.groups.value.data) > 1:
            channel = (d[1] // (w[0] // groups)) * w[1] + channel
        window = d[3 + rank :]
        spatial = win.input_index(d[2 : 2 + rank], window)
        padding = Padding((0, 0, *win.pad_low), (0, 0, *win.pad_high), 0)
        element_type = result.element_type
        stage = Stage(
            parallel(2 + rank) + reduction(1 + rank),
            (*out, w[1], *win.size),
            (
                Access(
                    OperandSource(0),
                    AffineMap(len(d), 0, (d[0], channel, *spatial)),
                    padding if win.is_padded else None,
                ),
                Access(OperandSource(1), AffineMap(len(d), 0, (d[1], d[2 + rank], *window))),
            ),
            AffineMap(len(d), 0, tuple(d[: 2 + rank])),
            out,
            element_type,
            Apply("mul", (self.addend(0), self.addend(1)), element_type),
            "add",
        )
        return Structure((stage,), (0,))

    def iteration_domain(self) -> list[IterationDim]:
        """Return the dims of the loop nest, with output channels in whole groups."""
        dims = super().iteration_domain()
        if (groups := self.groups.value.data) > 1:
            dims[1] = replace(dims[1], unit=dims[1].extent // groups)
        return dims

    def tile_attributes(self, box: Box, reads: Reads) -> Mapping[str, Attribute] | None:
        """Return the padding that is left and the number of whole groups.

        The result is None if the box cuts a group. Zeros are omitted, so that tiles have equal
        attributes.
        """
        left = {**padding_of(reads), **self._without_zeros}
        if (groups := self.groups.value.data) == 1:
            return left
        start, size = box[1]
        unit = shape_of(self.weight)[0] // groups
        if start % unit or size % unit:
            return None
        return {**left, "groups": integer(size // unit)}

    @property
    def _without_zeros(self) -> Mapping[str, Attribute]:
        names = [name for name in ("zeros_low", "zeros_high") if name in self.attributes]
        return dict.fromkeys(names, integers([0] * (len(shape_of(self.input)) - 2)))
