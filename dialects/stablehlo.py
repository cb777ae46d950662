"""The generic form of StableHLO, and of ops of CHLO in it, which `convert-stablehlo-to-braid`
reads.

xDSL has a part of the dialect; here, all ops are read. The custom form is for upstream's parser,
see `read_mlir`. Source: OpenXLA, "StableHLO Specification".
"""

import re

from xdsl.ir import Attribute, Dialect, OpTraits
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import Parser
from xdsl.traits import IsTerminator, Pure

from braid.dialects.foreign import ForeignOp, TextAttr, foreign_ops

_OPERATORS = """
abs add all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference
batch_norm_training bitcast_convert broadcast broadcast_in_dim case cbrt ceil cholesky clamp
collective_permute compare complex composite concatenate constant convert convolution cosine
count_leading_zeros custom_call divide dot dot_general dynamic_broadcast_in_dim dynamic_conv
dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice einsum
exponential exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag
infeed iota is_finite log log_plus_one logistic map maximum minimum multiply negate not
optimization_barrier or outfeed pad partition_id popcnt power real real_dynamic_slice recv reduce
reduce_precision reduce_scatter reduce_window remainder replica_id reshape reverse rng
rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter send
set_dimension_size shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt
subtract tan tanh torch_index_select transpose triangular_solve tuple unary_einsum
uniform_dequantize uniform_quantize while xor
""".split()  # noqa: SIM905  twenty lines as a list

_CHLO_OPERATORS = """
acos acosh asin asinh atan atanh conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf
lgamma ragged_dot sinh square tan top_k
""".split()  # noqa: SIM905  three lines as a list
"""Exporters write these ops of CHLO, a dialect above StableHLO."""


@irdl_attr_definition
class ConvolutionDimsAttr(TextAttr):
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: the meaning of a convolution's dims."""

    name = "stablehlo.conv"


@irdl_attr_definition
class DotDimsAttr(TextAttr):
    """The batching and contracting dims of `dot_general`."""

    name = "stablehlo.dot"


@irdl_attr_definition
class GatherDimsAttr(TextAttr):
    """The attribute says which part each dim of a `gather` plays."""

    name = "stablehlo.gather"


@irdl_attr_definition
class ScatterDimsAttr(TextAttr):
    """The attribute says which part each dim of a `scatter` plays."""

    name = "stablehlo.scatter"


@irdl_attr_definition
class ComparisonDirectionAttr(TextAttr):
    """`EQ`, `NE`, `GE`, `GT`, `LE` or `LT`."""

    name = "stablehlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(TextAttr):
    """`FLOAT`, `TOTALORDER`, `SIGNED` or `UNSIGNED`."""

    name = "stablehlo.comparison_type"


@irdl_attr_definition
class PrecisionAttr(TextAttr):
    """`DEFAULT`, `HIGH` or `HIGHEST`: a hint, which braid need not follow."""

    name = "stablehlo.precision"


@irdl_attr_definition
class AlgorithmAttr(TextAttr):
    """The attribute says how precisely a product is computed."""

    name = "stablehlo.dot_algorithm"


@irdl_attr_definition
class ResultAccuracyAttr(TextAttr):
    """The attribute says how precisely an elementary function is computed."""

    name = "stablehlo.result_accuracy"


@irdl_attr_definition
class ApiVersionAttr(TextAttr):
    """The calling convention of a `custom_call`."""

    name = "stablehlo.custom_call_api_version"


@irdl_attr_definition
class TransposeAttr(TextAttr):
    """`NO_TRANSPOSE`, `TRANSPOSE` or `ADJOINT`: how `triangular_solve` uses its matrices."""

    name = "stablehlo.transpose"


@irdl_attr_definition
class FftTypeAttr(TextAttr):
    """`FFT`, `IFFT`, `RFFT` or `IRFFT`."""

    name = "stablehlo.fft_type"


@irdl_attr_definition
class RngAlgorithmAttr(TextAttr):
    """`DEFAULT`, `THREE_FRY` or `PHILOX`: which random bits a state gives."""

    name = "stablehlo.rng_algorithm"


@irdl_attr_definition
class RngDistributionAttr(TextAttr):
    """`UNIFORM` or `NORMAL`: how the numbers of `rng` are distributed."""

    name = "stablehlo.rng_distribution"


@irdl_attr_definition
class OutputOperandAliasAttr(TextAttr):
    """The attribute says that a result of a `custom_call` may share memory with an operand."""

    name = "stablehlo.output_operand_alias"


_BOUND = re.compile(r"\d{1,18}", re.ASCII)


@irdl_attr_definition
class TypeExtensionsAttr(TextAttr):
    """`#stablehlo.bounds<8, ?>` in a type: the largest extent of each dim, `?` where none is."""

    name = "stablehlo.bounds"

    def bounds(self) -> list[int | None]:
        """Return the bound of each dim; None for any other text, and beyond 18 digits."""
        texts = [text.strip() for text in self.text.data.split(",")]
        return [int(text) if _BOUND.fullmatch(text) else None for text in texts]


class StablehloOp(ForeignOp):
    """Any op of StableHLO, or of CHLO."""

    @classmethod
    def parse(cls, parser: Parser) -> "StablehloOp":
        """Raise a parse error: the custom form is left to upstream."""
        parser.raise_error(f"expected the generic form, '\"{cls.name}\"(…)'")


class ReturnOp(StablehloOp):
    """`stablehlo.return`, which ends all regions."""

    name = "stablehlo.return"

    traits = OpTraits(lambda: (Pure(), IsTerminator()))


_ATTRIBUTES: list[type[Attribute]] = [
    ConvolutionDimsAttr,
    DotDimsAttr,
    GatherDimsAttr,
    ScatterDimsAttr,
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    PrecisionAttr,
    AlgorithmAttr,
    ResultAccuracyAttr,
    ApiVersionAttr,
    TransposeAttr,
    FftTypeAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    OutputOperandAliasAttr,
    TypeExtensionsAttr,
]

Stablehlo = Dialect(
    "stablehlo", [*foreign_ops(StablehloOp, "stablehlo", _OPERATORS), ReturnOp], _ATTRIBUTES
)

Chlo = Dialect("chlo", [*foreign_ops(StablehloOp, "chlo", _CHLO_OPERATORS)], [])
