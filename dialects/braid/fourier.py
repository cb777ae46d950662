"""The discrete Fourier transform along one dim."""

from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType, f32, f64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    element_type_of,
    extents_of,
    integer,
    require,
    require_one_of,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box
from braid.dialects.braid.fourier_decomposition import FourierDecomposition
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.tiling import Tile

FOURIER_KINDS = ("fft", "ifft", "rfft", "irfft")

MOST_POINTS = 1 << 18
"""The longest signal: artifacts hold up to six tables of its length."""


@irdl_op_definition
class FftOp(DecomposableOp):
    """The discrete Fourier transform along `dim` of signals of `length` elements.

    The last dim of a tensor of f32 or f64 holds real and imaginary parts: it is 2, or 1 of real
    numbers. `kind` is `fft`, Σ x[j] · exp(-2πi j k / length) for each k; `ifft`, its inverse,
    divided by `length`; both map real or complex numbers to complex ones. `rfft` is the first
    length / 2 + 1 elements of the `fft` of real numbers. `irfft` is its inverse; it ignores the
    imaginary part of the first element and, if `length` is even, of the last one. Transforms along
    several dims are a chain of these. `length` is the extent of `dim` in the real or complex
    signal. Fails verification for other extents, types and kinds, and for more than `MOST_POINTS`
    elements.

    ```mlir
    %y = braid.fft %x {kind = "rfft", dim = 1 : i64, length = 400 : i64}
        : (tensor<8x400x1xf32>) -> tensor<8x201x2xf32>
    ```
    """

    name = "braid.fft"

    input = operand_def(TensorType)
    kind = attr_def(StringAttr)
    dim = attr_def(IntegerAttr[IntegerType])
    length = attr_def(IntegerAttr[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(input: SSAValue | Operation, kind: str, dim: int, length: int | None = None) -> "FftOp":
        """Build the op; `length` is by default that of the operand, or for `irfft` the even one of
        the two possible lengths.

        Raises UnsupportedError if it is not given and the operand's extent is open.
        """
        if length is None:
            extent = fixed(extents_of(SSAValue.get(input))[dim], f"dim {dim}")
            length = 2 * (extent - 1) if kind == "irfft" else extent
        return FftOp.on(input, kind=StringAttr(kind), dim=integer(dim), length=integer(length))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        shape, type = list(extents_of(self.input)), element_type_of(self.input)
        kind, dim, length = self.kind.data, self.dim.value.data, self.length.value.data
        require(type in (f32, f64), "element type is {}, expected f32 or f64", type)
        require_one_of("kind", kind, FOURIER_KINDS)
        last = len(shape) - 1
        require(0 <= dim < last, f"dim is {dim}, expected 0 to {last - 1}, before the parts")
        require(1 <= length <= MOST_POINTS, f"length is {length}, expected 1 to {MOST_POINTS}")
        parts = {"rfft": (1,), "irfft": (2,)}.get(kind, (1, 2))
        expected = " or ".join(map(str, parts))
        require(shape[-1] in parts, f"the last dim is {shape[-1]}, expected {expected} for {kind}")
        extent = length // 2 + 1 if kind == "irfft" else length
        require(may_equal(shape[dim], extent), f"dim {dim} is {shape[dim]}, expected {extent}")
        shape[dim] = length // 2 + 1 if kind == "rfft" else length
        shape[-1] = 1 if kind == "irfft" else 2
        return [tensor_type(type, shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Transform in double precision."""
        (x,), dim, length = operands, self.dim.value.data, self.length.value.data
        wide = x.astype(np.float64)
        values = wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0]
        match self.kind.data:
            case "fft":
                result = np.fft.fft(values, axis=dim)
            case "ifft":
                result = np.fft.ifft(values, axis=dim)
            case "rfft":
                result = np.fft.rfft(values, axis=dim)
            case _:
                result = np.fft.irfft(values, length, axis=dim)
        parts = [result] if self.kind.data == "irfft" else [result.real, result.imag]
        return (np.stack(parts, axis=-1).astype(x.dtype),)

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Insert small products with matrices; see `fourier_decomposition`."""
        dim, length = self.dim.value.data, self.length.value.data
        return [FourierDecomposition(builder, self.input, self.kind.data, dim, length).result()]

    def tile(self, box: Box) -> Tile | None:
        """Return the slice of all elements along `dim`, with both parts.

        The result is None if the box cuts either.
        """
        result, operand = list(self.result_type().get_shape()), list(shape_of(self.input))
        read = list(box)
        for dim in (self.dim.value.data, len(result) - 1):
            if box[dim] != (0, result[dim]):
                return None
            read[dim] = (0, operand[dim])
        return Tile((tuple(read),))
