"""Resizing by interpolation."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, opt_attr_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    element_type_of,
    extents_of,
    integers,
    require,
    require_computed,
    require_one_of,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box, Range
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of, f32, i1, is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.numpy_functions import convert
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.resampling import (
    COORDINATES,
    MODES,
    NEAREST,
    Dim,
    Resampling,
    Taps,
    filter_steps,
    resampling_taps,
)
from braid.dialects.braid.size_facts import may_be_at_most
from braid.dialects.braid.size_limits import require_table
from braid.dialects.braid.tiling import Tile
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import minimum

_LEAST_SCALE = 2**-20


@irdl_op_definition
class ResizeOp(DecomposableOp):
    """Resamples every dim to the extent that the result type declares.

    `scales` are output elements per input element, one per dim (they need not be exact ratios).
    `mode` is `nearest`, `linear` or `cubic`; the other attributes are those of ONNX `Resize`, see
    `Resampling`. `region` (start of every dim, then end of every dim, in units of the extent) is
    the region to which `tf_crop_and_resize` crops. Integers are computed in floats and truncated;
    with `antialias` dims are resampled from the last to the first, and after each the result is
    rounded to the nearest integer of the type, halves away from zero, as ONNX Runtime and PyTorch
    do. With `part` the op computes a part of a larger resize: `part` has, per dim, the extent of
    the larger input and the offset of the operand in it, and the same for the output. Fails
    verification for names that mean nothing, lists of the wrong length, scales that are not
    positive, or a part that is not in the whole.

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
    part = opt_attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        sizes: Sequence[Extent],
        scales: Sequence[float],
        how: Resampling,
        region: Sequence[float] = (),
    ) -> "ResizeOp":
        """Build a resize to extents `sizes`."""
        value = SSAValue.get(input)
        return ResizeOp.declared(
            tensor_type(element_type_of(value), sizes),
            value,
            mode=StringAttr(how.mode),
            coordinates=StringAttr(how.coordinates),
            nearest_mode=StringAttr(how.nearest_mode),
            scales=DenseArrayBase.from_list(f64, list(scales)),
            region=DenseArrayBase.from_list(f64, list(region)),
            cubic_a=FloatAttr(how.cubic_a, f64),
            exclude_outside=IntegerAttr(int(how.exclude_outside), i1),
            antialias=IntegerAttr(int(how.antialias), i1),
            extrapolation=FloatAttr(how.extrapolation, f64),
        )

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
        """Return the declared shape."""
        rank, sizes = len(extents_of(self.input)), extents_of(self.output)
        require(len(sizes) == rank, f"the result has rank {len(sizes)}, expected {rank}")
        require_one_of("mode", self.mode.data, MODES)
        require_one_of("coordinates", self.coordinates.data, COORDINATES)
        require_one_of("nearest_mode", self.nearest_mode.data, NEAREST)
        scales, region = self.scales.get_values(), self.region.get_values()
        require(len(scales) == rank, f"scales has {len(scales)} entries, expected {rank}")
        require(
            all(0 < scale < math.inf for scale in scales),
            f"scales are {scales}, expected positive numbers",
        )
        cubic = self.cubic_a.value.data
        require(math.isfinite(cubic), f"cubic_a is {cubic}, expected a finite number")
        require(all(map(math.isfinite, region)), f"region is {region}, expected finite numbers")
        require(
            len(region) in (0, 2 * rank),
            f"region has {len(region)} entries, expected {2 * rank} or none",
        )
        if self.mode.data != "nearest":
            require_computed(element_type_of(self.input))
        if self.part is not None:
            entries = len(self.part.get_values())
            require(entries == 4 * rank, f"part has {entries} entries, expected {4 * rank}")
        self._verify_antialias()
        self._verify_tables()
        self._verify_part()
        pairs = zip(extents_of(self.input), sizes, strict=True)
        changed = [(own, wanted) for own, wanted in pairs if own != wanted and wanted != DYNAMIC]
        require(
            0 in sizes or all(may_be_at_most(minimum(1, size), own) for own, size in changed),
            f"the result has shape {list(sizes)}, the input no elements",
        )
        return [tensor_type(element_type_of(self.input), sizes)]

    def _verify_antialias(self) -> None:
        """Check that no scale makes an antialiasing filter reach over too many elements."""
        scales = self.scales.get_values()
        require(
            not self.antialias.value.data or min(scales, default=1) >= _LEAST_SCALE,
            f"scales are {scales}, expected at least {_LEAST_SCALE} for an antialiasing filter",
        )

    def _verify_tables(self) -> None:
        """Check the size of the table of `taps`, which has entries for every output along a dim."""
        for dim, (places, scale) in enumerate(
            zip(self._places(), self.scales.get_values(), strict=True)
        ):
            (extent, _), (whole, _) = places
            if extent != whole or scale != 1:
                steps = filter_steps(scale, self.resampling)
                require_table(whole * (len(steps) + 1), f"dim {dim}, taps of the outputs")

    def _verify_part(self) -> None:
        if self.part is None:
            return
        shape, sizes = shape_of(self.input), self.result_type().get_shape()
        for dim, places in enumerate(self._places()):
            for extent, (most, first) in zip((shape[dim], sizes[dim]), places, strict=True):
                require(
                    first >= 0 and first + extent <= most,
                    f"dim {dim}: part of {extent} elements from {first}, expected within {most}",
                )
        for dim, taps in self.taps().items():
            last, extent = int(taps.indices.max(initial=0)), shape[dim]
            require(
                taps.indices.min(initial=0) >= 0 and last < extent,
                f"dim {dim}: the part reads more of the input than the operand is",
            )

    def _places(self) -> list[tuple[Range, Range]]:
        """Return per dim the extents of the whole input and output, and the op's begin in them."""
        if self.part is None:
            shapes = zip(shape_of(self.input), self.result_type().get_shape(), strict=True)
            return [((extent, 0), (size, 0)) for extent, size in shapes]
        entries = iter(self.part.get_values())
        return [((a, b), (c, d)) for a, b, c, d in zip(*[entries] * 4, strict=True)]

    def taps(self) -> dict[int, Taps]:
        """Return the taps of every dim that changes. Raises UnsupportedError if one is open."""
        shape, sizes = shape_of(self.input), self.result_type().get_shape()
        scales, region = self.scales.get_values(), self.region.get_values()
        how, rank = self.resampling, len(shape)
        found: dict[int, Taps] = {}
        for number, (places, size, scale) in enumerate(
            zip(self._places(), sizes, scales, strict=True)
        ):
            (extent, skipped), (whole, first) = places
            bounds = (region[number], region[rank + number]) if region else (0.0, 1.0)
            if extent == whole and scale == 1 and bounds == (0.0, 1.0):
                continue
            if DYNAMIC in (extent, whole):
                raise UnsupportedError(f"{self.name} along dim {number}, which is open")
            taps = resampling_taps(Dim(extent, whole, scale, bounds), how)
            found[number] = taps.of(first, size, skipped)
        return found

    def tile(self, box: Box) -> Tile:
        """Return the slice with the elements under the taps."""
        shape = self.result_type().get_shape()
        needed, places = list(box), self._places()
        alike: list[tuple[int, bytes, bytes, bytes]] = []
        for dim, taps in self.taps().items():
            if box[dim] == (0, shape[dim]):
                needed[dim] = (0, shape_of(self.input)[dim])
                continue
            own = taps.of(*box[dim], 0)
            first, last = int(own.indices.min()), int(own.indices.max())
            needed[dim] = (first, last - first + 1)
            (extent, skipped), (whole, begin) = places[dim]
            places[dim] = ((extent, skipped + first), (whole, begin + box[dim][0]))
            moved = (own.indices - first).tobytes()
            alike.append((dim, moved, own.weights.tobytes(), own.offset.tobytes()))
        if not alike:
            return Tile((tuple(needed),))
        entries = [entry for place in places for pair in place for entry in pair]
        return Tile((tuple(needed),), {"part": integers(entries)}, tuple(alike))

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return sums of weighted taps per dim, computed in double precision."""
        y = operands[0] if self.mode.data == "nearest" else operands[0].astype(np.float64)
        taps_of, is_rounded = self._taps_in_order(), self._is_rounded()
        for dim, taps in taps_of.items():
            if self.mode.data == "nearest":
                y = np.take(y, taps.indices[0], axis=dim)
            else:
                y = _weighted(y, dim, taps)
            column = [-1 if other == dim else 1 for other in range(y.ndim)]
            outside = taps.outside.reshape(column)
            y = np.where(outside, taps.offset.reshape(column), y) if outside.any() else y
            if is_rounded:
                whole = np.copysign(np.floor(np.abs(y) + 0.5), y)
                y = convert(whole, operands[0].dtype).astype(np.float64)
        return (convert(y, operands[0].dtype),)

    def _is_rounded(self) -> bool:
        """Return whether integers are rounded after each dim."""
        computes = self.mode.data != "nearest" and not is_float(element_type_of(self.input))
        return computes and bool(self.antialias.value.data)

    def _taps_in_order(self) -> dict[int, Taps]:
        """Return the taps of every dim that changes, in the order of resampling."""
        taps = self.taps()
        return dict(reversed(taps.items())) if self._is_rounded() else taps

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Insert, per dim, a gather for every tap, times its weights, summed.

        Raises UnsupportedError if a dim that changes is open.
        """
        element_type = element_type_of(self.input)
        value: SSAValue = self.input
        computes_in_float = self.mode.data != "nearest" and not is_float(element_type)
        if computes_in_float:
            wide = f64 if self._is_rounded() or bytes_of(element_type) > 2 else f32
            value = builder.insert(elementwise("cast", value, element_type=wide)).output
        for dim, taps in self._taps_in_order().items():
            value = resample(builder, value, dim, taps)
            if self._is_rounded():
                value = _rounded(builder, value, element_type)
        if computes_in_float:
            value = builder.insert(elementwise("cast", value, element_type=element_type)).output
        return [value]


def _rounded(builder: Builder, value: SSAValue, element_type: Attribute) -> SSAValue:
    """Return floats rounded to the nearest integer of a type, halves away from zero."""
    half = np.full([1] * len(shape_of(value)), 0.5, to_numpy(element_type_of(value)))
    size = builder.insert(elementwise("abs", value)).output
    whole = builder.insert(
        elementwise("add", size, builder.insert(ConstantOp.of(half)).output)
    ).output
    whole = builder.insert(elementwise("floor", whole)).output
    sign = builder.insert(elementwise("sign", value)).output
    whole = builder.insert(elementwise("mul", whole, sign)).output
    whole = builder.insert(elementwise("cast", whole, element_type=element_type)).output
    return builder.insert(elementwise("cast", whole, element_type=element_type_of(value))).output


def _weighted(y: Array, dim: int, taps: Taps) -> Array:
    """Return the sums of the taps along `dim`; taps whose weights are all 0 are not read."""
    column = [-1 if other == dim else 1 for other in range(y.ndim)]
    total: Array | None = None
    for indices, weights in zip(taps.indices, taps.weights, strict=True):
        if total is None or weights.any():
            term = np.take(y, indices, axis=dim) * weights.reshape(column)
            total = term if total is None else total + term
    assert total is not None, "every element has a tap"
    return total


def resample(builder: Builder, value: SSAValue, dim: int, taps: Taps) -> SSAValue:
    """Return `value` resampled along `dim`; weights that are all 1 and offsets of 0 take no op."""
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
