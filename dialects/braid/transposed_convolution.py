"""Transposed convolution."""

from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, opt_attr_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    element_type_of,
    extents_of,
    integer,
    integers,
    require,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box, Range
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import numpy_from_dense
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_facts import may_be_at_most, may_equal
from braid.dialects.braid.tiling import IterationDim, Tile
from braid.dialects.braid.transposed_decomposition import (
    TransposedConvolution,
    TransposedWindows,
)
from braid.dialects.braid.windows import WindowedOp, require_products, window_attributes
from braid.support.errors import UnsupportedError


@irdl_op_definition
class ConvTransposeOp(WindowedOp, DecomposableOp):
    """Transposed convolution: every input element adds its multiple of the weight's window.

    Operands: input `[N, C, spatial…]`, weight `[C, O / groups, window…]`.
    Result: `[N, O, stride · (spatial - 1) + dilation · (window - 1) + 1 + output_padding -
    pad_low - pad_high …]`; `pad_low` and `pad_high` count elements cut off at the edges,
    `output_padding` elements that are added after the last one before cutting.
    All lists have one entry per spatial dim.
    `finite_weight` says that no weight is infinite or NaN.
    Fails verification for other ranks or element types, channel counts that do not fit, lists of
    the wrong length, or an empty result.

    ```mlir
    %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>,
        output_padding = array<i64: 0, 0>, groups = 1 : i64}
        : (tensor<1x64x28x28xf32>, tensor<64x32x2x2xf32>) -> tensor<1x32x56x56xf32>
    ```
    """

    name = "braid.conv_transpose"

    input = operand_def(TensorType)
    weight = operand_def(TensorType)
    output_padding = attr_def(DenseArrayBase[IntegerType])
    groups = attr_def(IntegerAttr[IntegerType])
    finite_weight = opt_attr_def(UnitAttr)
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
        output_padding: Sequence[int] | None = None,
        groups: int = 1,
        finite_weight: bool = False,
    ) -> "ConvTransposeOp":
        """Build a transposed convolution from plain integers."""
        known = {"finite_weight": UnitAttr()} if finite_weight else {}
        return ConvTransposeOp.on(
            input,
            weight,
            **window_attributes(strides, dilations, pad_low, pad_high),
            output_padding=integers(output_padding or [0] * len(strides)),
            groups=integer(groups),
            **known,
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        x, w, groups = extents_of(self.input), shape_of(self.weight), self.groups.value.data
        require(len(x) >= 3, f"the input has rank {len(x)}, expected at least 3")
        require(len(w) == len(x), f"the weight has rank {len(w)}, expected {len(x)}")
        require(may_equal(x[1], w[0]), f"the input has {x[1]} channels, expected {w[0]}")
        require(DYNAMIC not in w, f"the weight has shape {list(w)}, expected no open dims")
        require(groups > 0, f"groups is {groups}, expected a positive number")
        require_products(self.input, self.weight)
        require(w[0] % groups == 0, f"{w[0]} input channels do not divide by {groups} groups")
        self._verify_lists(len(x) - 2)
        require(min(w[2:]) > 0, f"the window is {w[2:]}, expected positive extents")
        positive = all(may_be_at_most(1, extent) for extent in x[2:])
        require(positive, f"the input has spatial extents {x[2:]}, expected positive ones")
        spatial = [
            DYNAMIC if extent == DYNAMIC else self.windows.kept_extent(d, extent)
            for d, extent in enumerate(x[2:])
        ]
        require(
            all(may_be_at_most(1, extent) for extent in spatial),
            f"the result has spatial extents {spatial}, expected positive ones",
        )
        return [tensor_type(element_type_of(self.input), (x[0], w[1] * groups, *spatial))]

    def _verify_lists(self, rank: int) -> None:
        for name in ("strides", "dilations", "pad_low", "pad_high", "output_padding"):
            values = getattr(self, name).get_values()
            require(len(values) == rank, f"{name} has {len(values)} entries, expected {rank}")
            least = 1 if name in ("strides", "dilations") else 0
            require(min(values) >= least, f"{name} is {values}, expected at least {least}")

    @property
    def windows(self) -> TransposedWindows:
        """The lists of the op as numbers."""
        return TransposedWindows(
            shape_of(self.weight)[2:],
            self.strides.get_values(),
            self.dilations.get_values(),
            self.pad_low.get_values(),
            self.pad_high.get_values(),
            self.output_padding.get_values(),
        )

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Add the products of every window position at strided slices of the result."""
        x, w = map(wide, operands)
        groups, spatial = self.groups.value.data, x.shape[2:]
        windows = self.windows
        full = [windows.full_extent(dim, extent) for dim, extent in enumerate(spatial)]
        xs = x.reshape(x.shape[0], groups, w.shape[0] // groups, *spatial)
        ws = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        y = np.zeros((x.shape[0], groups, w.shape[1], *full), x.dtype)
        strides, dilations = windows.strides, windows.dilations
        for position in np.ndindex(*w.shape[2:]):
            products = np.einsum("ngc...,gco->ngo...", xs, ws[(..., *position)])
            target = tuple(
                slice(p * dilation, p * dilation + (extent - 1) * stride + 1, stride)
                for p, dilation, stride, extent in zip(
                    position, dilations, strides, spatial, strict=True
                )
            )
            y[(..., *target)] += products
        kept = tuple(
            slice(low, extent - high)
            for low, high, extent in zip(windows.cut_low, windows.cut_high, full, strict=True)
        )
        return (
            y.reshape(x.shape[0], groups * w.shape[1], *full)[(..., *kept)].astype(
                operands[0].dtype
            ),
        )

    def iteration_domain(self) -> list[IterationDim]:
        """Return the dims of the loop nest, in units.

        Output channels come in whole groups, and positions in whole steps if these divide them.
        """
        shape, groups = self.result_type().get_shape(), self.groups.value.data
        units = (1, shape[1] // groups if groups > 1 else 1, *self.strides.get_values())
        return [
            IterationDim(extent, unit if extent % unit == 0 else 1)
            for extent, unit in zip(shape, units, strict=True)
        ]

    def tile(self, box: Box) -> Tile | None:
        """Return the channels of whole groups, and the elements whose windows reach into the box.

        None where the box cuts a group.
        """
        w, groups = shape_of(self.weight), self.groups.value.data
        (first, count), outputs = box[1], box[1]
        channels = (0, w[0])
        if groups > 1:
            if first % w[1] or count % w[1]:
                return None
            inputs, outputs = w[0] // groups, (0, w[1])
            groups, channels = count // w[1], (first // w[1] * inputs, count // w[1] * inputs)
        parts = [self._reaching(dim, part) for dim, part in enumerate(box[2:])]
        spatial, low, high, extra = zip(*parts, strict=True)
        attributes: dict[str, Attribute] = {
            "groups": integer(groups),
            "pad_low": integers(low),
            "pad_high": integers(high),
            "output_padding": integers(extra),
        }
        window = ((0, extent) for extent in w[2:])
        return Tile(((box[0], channels, *spatial), (channels, outputs, *window)), attributes)

    def _reaching(self, dim: int, part: Range) -> tuple[Range, int, int, int]:
        """Return the elements that add to a part of spatial dim `dim`, and both paddings."""
        windows = self.windows
        fields = (windows.cut_low, windows.cut_high, windows.extra, windows.strides)
        low, high, extra, stride = (field[dim] for field in fields)
        extent, reach = shape_of(self.input)[2 + dim], windows.reach[dim]
        if part == (0, self.result_type().get_shape()[2 + dim]):
            return (0, extent), low, high, extra
        begin, end = part[0] + low, part[0] + low + part[1]
        first = max(0, min(-((reach - 1 - begin) // stride), begin // stride, extent - 1))
        last = min((end - 1) // stride, extent - 1)
        cut = begin - first * stride
        rest = stride * (last - first) + reach - cut - part[1]
        return (first, last - first + 1), cut, max(rest, 0), max(-rest, 0)

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Insert convolutions and rearrangements; see `transposed_decomposition`.

        Raises UnsupportedError for open dims without sizes.
        """
        if DYNAMIC in extents_of(self.input):
            raise UnsupportedError(f"{self.name} on open dims without sizes")
        is_finite = self.finite_weight is not None or _is_finite(self.weight)
        groups = self.groups.value.data
        problem = TransposedConvolution(builder, self.input, self.weight, self.windows, groups)
        return [problem.decomposed(is_finite)]


def _is_finite(value: SSAValue) -> bool:
    """Return whether `value` is a constant without infinities and NaN, perhaps in another shape."""
    op = value.owner
    while isinstance(op, ReshapeOp | TransposeOp | SliceOp):
        op = op.operands[0].owner
    return isinstance(op, ConstantOp) and bool(np.isfinite(wide(numpy_from_dense(op.value))).all())
