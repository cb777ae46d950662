"""Resizing by interpolation."""

from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    f64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    element_type_of,
    require,
    require_one_of,
    set_result_types,
    shape_of,
)
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import f32, i1, is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.resampling import (
    COORDINATES,
    MODES,
    NEAREST,
    Dim,
    Resampling,
    Taps,
    resampling_taps,
)
from braid.support.errors import UnsupportedError


@irdl_op_definition
class ResizeOp(DecomposableOp):
    """Resamples every dim to the extent that the result type declares.

    `scales` are output elements per input element, one per dim (they need not be exact ratios).
    `mode` is `nearest`, `linear` or `cubic`; the other attributes are those of ONNX `Resize`,
    see `Resampling`. `region` (start of every dim, then end of every dim, in units of the
    extent) is what `tf_crop_and_resize` crops to. Integers are computed in f32 and truncated.
    Fails verification for names that mean nothing, lists of the wrong length, or scales that
    are not positive.

    ```mlir
    %y = braid.resize %x {mode = "nearest", coordinates = "asymmetric", nearest_mode = "floor",
        scales = array<f64: 1.0, 1.0, 2.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64,
        exclude_outside = false, antialias = false, extrapolation = 0.0 : f64}
        : (tensor<1x8x14x14xf32>) -> tensor<1x8x28x28xf32>
    ```
    """

    name = "braid.resize"

    input = operand_def(TensorType)
    mode = attr_def(StringAttr)
    coordinates = attr_def(StringAttr)
    nearest_mode = attr_def(StringAttr)
    scales = attr_def(DenseArrayBase[Float64Type])
    region = attr_def(DenseArrayBase[Float64Type])
    cubic_a = attr_def(FloatAttr[Float64Type])
    exclude_outside = attr_def(BoolAttr)
    antialias = attr_def(BoolAttr)
    extrapolation = attr_def(FloatAttr[Float64Type])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        sizes: Sequence[int],
        scales: Sequence[float],
        how: Resampling,
        region: Sequence[float] = (),
    ) -> "ResizeOp":
        """Builds a resize to extents `sizes`."""
        value = SSAValue.get(input)
        op = ResizeOp.create(
            operands=[value],
            attributes={
                "mode": StringAttr(how.mode),
                "coordinates": StringAttr(how.coordinates),
                "nearest_mode": StringAttr(how.nearest_mode),
                "scales": DenseArrayBase.from_list(f64, list(scales)),
                "region": DenseArrayBase.from_list(f64, list(region)),
                "cubic_a": FloatAttr(how.cubic_a, f64),
                "exclude_outside": IntegerAttr(int(how.exclude_outside), i1),
                "antialias": IntegerAttr(int(how.antialias), i1),
                "extrapolation": FloatAttr(how.extrapolation, f64),
            },
        )
        set_result_types(op, [TensorType(element_type_of(value), sizes)])
        return op

    @property
    def resampling(self) -> Resampling:
        """The attributes that hold for every dim."""
        return Resampling(
            self.mode.data,
            self.coordinates.data,
            self.nearest_mode.data,
            self.cubic_a.value.data,
            bool(self.exclude_outside.value.data),
            bool(self.antialias.value.data),
            self.extrapolation.value.data,
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """The declared shape."""
        rank, sizes = len(shape_of(self.input)), self.result_type().get_shape()
        require(len(sizes) == rank, f"the result has rank {len(sizes)}, expected {rank}")
        require_one_of("mode", self.mode.data, MODES)
        require_one_of("coordinates", self.coordinates.data, COORDINATES)
        require_one_of("nearest_mode", self.nearest_mode.data, NEAREST)
        scales, region = self.scales.get_values(), self.region.get_values()
        require(len(scales) == rank, f"scales has {len(scales)} entries, expected {rank}")
        require(min(scales, default=1) > 0, f"scales are {scales}, expected positive numbers")
        require(
            len(region) in (0, 2 * rank),
            f"region has {len(region)} entries, expected {2 * rank} or none",
        )
        return [TensorType(element_type_of(self.input), sizes)]

    def taps(self) -> dict[int, Taps]:
        """The taps of every dim that changes. Raises UnsupportedError if one is open."""
        shape, sizes = shape_of(self.input), self.result_type().get_shape()
        scales, region = self.scales.get_values(), self.region.get_values()
        how, rank = self.resampling, len(shape)
        found: dict[int, Taps] = {}
        for number, (extent, size, scale) in enumerate(zip(shape, sizes, scales, strict=True)):
            bounds = (region[number], region[rank + number]) if region else (0.0, 1.0)
            if extent == size and scale == 1 and bounds == (0.0, 1.0):
                continue
            if DYNAMIC in (extent, size):
                raise UnsupportedError(f"{self.name} along dim {number}, which is open")
            found[number] = resampling_taps(Dim(extent, size, scale, bounds), how)
        return found

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Sums of weighted taps per dim, in double precision."""
        y = operands[0] if self.mode.data == "nearest" else operands[0].astype(np.float64)
        for dim, taps in self.taps().items():
            if self.mode.data == "nearest":
                y = np.take(y, taps.indices[0], axis=dim)
            else:
                y = _weighted(y, dim, taps)
            column = [-1 if other == dim else 1 for other in range(y.ndim)]
            outside = taps.outside.reshape(column)
            y = np.where(outside, taps.offset.reshape(column), y) if outside.any() else y
        return (y.astype(operands[0].dtype),)

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Per dim, a gather for every tap, times its weights, summed.

        Raises UnsupportedError if a dim that changes is open.
        """
        element_type = element_type_of(self.input)
        value: SSAValue = self.input
        computes_in_float = self.mode.data != "nearest" and not is_float(element_type)
        if computes_in_float:
            value = builder.insert(elementwise("cast", value, element_type=f32)).output
        for dim, taps in self.taps().items():
            value = resample(builder, value, dim, taps)
        if computes_in_float:
            value = builder.insert(elementwise("cast", value, element_type=element_type)).output
        return [value]


def _weighted(y: Array, dim: int, taps: Taps) -> Array:
    """The sums of the taps along `dim`; one that weighs nothing anywhere is not read."""
    column = [-1 if other == dim else 1 for other in range(y.ndim)]
    total: Array | None = None
    for indices, weights in zip(taps.indices, taps.weights, strict=True):
        if total is None or weights.any():
            term = np.take(y, indices, axis=dim) * weights.reshape(column)
            total = term if total is None else total + term
    assert total is not None, "every element has a tap"
    return total


def resample(builder: Builder, value: SSAValue, dim: int, taps: Taps) -> SSAValue:
    """`value` resampled along `dim`; weights that are all 1 and offsets of 0 take no op."""
    dtype = to_numpy(element_type_of(value))
    column = [-1 if other == dim else 1 for other in range(len(shape_of(value)))]

    def constant(numbers: Array) -> SSAValue:
        return builder.insert(ConstantOp.of(numbers.astype(dtype).reshape(column))).output

    terms: list[SSAValue] = []
    for indices, weights in zip(taps.indices, taps.weights, strict=True):
        if terms and not weights.any():
            continue
        at = builder.insert(ConstantOp.of(indices))
        term = builder.insert(GatherOp.get(value, at, dim)).output
        if not (weights == 1).all():
            term = builder.insert(elementwise("mul", term, constant(weights))).output
        terms.append(term)
    total = terms[0]
    for term in terms[1:]:
        total = builder.insert(elementwise("add", total, term)).output
    if taps.outside.any():
        # Not added: the taps there have no weight, but may be infinite.
        outside = builder.insert(ConstantOp.of(taps.outside.reshape(column))).output
        total = builder.insert(elementwise("select", outside, constant(taps.offset), total)).output
    return total
