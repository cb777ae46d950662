"""Pooling: a reduction over sliding windows."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float32Type,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.accumulation import AccumulatingOp
from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    element_type_of,
    extents_of,
    integers,
    require,
    require_one_of,
    require_summable,
    tensor_type,
)
from braid.dialects.braid.boxes import Box
from braid.dialects.braid.numpy_functions import by_order, from_order
from braid.dialects.braid.reduction import UFUNCS, neutral_of, require_sum
from braid.dialects.braid.relayout import Array
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
from braid.dialects.braid.tiling import Reads
from braid.dialects.braid.windows import (
    WindowedOp,
    Windows,
    padded_windows,
    padding_of,
    window_attributes,
)

COMBINES = {"max": "maximum", "add": "add"}
"""The reduction of each kind of pooling."""


@irdl_op_definition
class PoolOp(AccumulatingOp, WindowedOp, StructuredOp):
    """Combines the elements of every window over the spatial dims.

    Operand: `[N, C, spatial…]`; `window`, `strides`, `dilations`, `pad_low` and `pad_high` have
    one entry per spatial dim.
    Result: `[N, C, (spatial + pad_low + pad_high - dilation · (window - 1) - 1) / stride + 1 …]`.
    `kind` is `max` (NaN if any is NaN; padded with the least value) or `add` (padded with 0; an
    average is this times the reciprocals of the counts). Narrow integers are added up in
    `accumulator`, where it is given.
    Fails verification for another `kind`, lists of the wrong length, or an empty result.

    ```mlir
    %y = braid.pool %x {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>,
        dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>}
        : (tensor<1x64x112x112xf32>) -> tensor<1x64x56x56xf32>
    ```
    """

    name = "braid.pool"

    input = operand_def(TensorType)
    kind = attr_def(StringAttr)
    window = attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        kind: str,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        pad_low: Sequence[int],
        pad_high: Sequence[int],
        dilations: Sequence[int],
        accumulator: IntegerType | Float32Type | None = None,
    ) -> "PoolOp":
        """Build a pooling from plain values."""
        return PoolOp.on(
            input,
            kind=StringAttr(kind),
            window=integers(window),
            accumulator=accumulator,
            **window_attributes(strides, dilations, pad_low, pad_high),
        )

    @property
    def windows(self) -> Windows:
        """The window of the pooling."""
        return self.windows_of(self.window.get_values())

    @property
    def combine(self) -> str:
        """The reduction over a window, as named in `Stage.combine`."""
        return COMBINES[self.kind.data]

    @property
    def padding_value(self) -> float | int | bool:
        """The value that stands around the input: the neutral element of the reduction."""
        return neutral_of(self.combine, element_type_of(self.input))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        shape = extents_of(self.input)
        require_one_of("kind", self.kind.data, COMBINES)
        require(len(shape) >= 3, f"the input has rank {len(shape)}, expected at least 3")
        if self.combine == "add":
            require_summable(element_type_of(self.input))
        require_sum(self.combine, self.accumulator)
        spatial = self.windows.output_shape(shape[2:])
        require_extents((*shape[:2], *self.windows.padded_shape(shape[2:])))
        element_type = self.sum_type(element_type_of(self.input))
        return [tensor_type(element_type, (*shape[:2], *spatial))]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return numpy's reduction of a view of all windows."""
        x = operands[0]
        windows = self.windows.clipped(x.shape[2:])
        views = padded_windows(self.widened(x), windows, self.padding_value)
        keys = by_order(self.combine, views)
        result = UFUNCS[self.combine].reduce(keys, axis=tuple(range(x.ndim, views.ndim)))
        return (self.narrowed(from_order(result, views.dtype), x),)

    def structure(self) -> Structure:
        """Return one stage.

        Its dims are n, c, output spatial…, then window….
        """
        result, win = self.result_type(), self.windows
        out, rank = result.get_shape(), result.get_num_dims() - 2
        d = [AffineExpr.dimension(i) for i in range(2 + 2 * rank)]
        index = (*d[:2], *win.input_index(d[2 : 2 + rank], d[2 + rank :]))
        padding = Padding((0, 0, *win.pad_low), (0, 0, *win.pad_high), self.padding_value)
        read = Access(
            OperandSource(0), AffineMap(len(d), 0, index), padding if win.is_padded else None
        )
        stage = Stage(
            parallel(2 + rank) + reduction(rank),
            (*out, *win.size),
            (read,),
            AffineMap(len(d), 0, tuple(d[: 2 + rank])),
            out,
            result.element_type,
            self.addend(0),
            self.combine,
        )
        return Structure((stage,), (0,))

    def tile_attributes(self, box: Box, reads: Reads) -> Mapping[str, Attribute]:
        """Return the padding that is left."""
        return padding_of(reads)
