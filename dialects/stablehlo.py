"""The generic form of StableHLO, and of ops of CHLO in it: what `convert-stablehlo-to-braid` reads.

xDSL has a part of the dialect. Here, all ops are read and nothing is checked, and attributes of the
dialect are kept as text: the pass says what is wrong. The custom form is for upstream's parser, see
`read_mlir`. Source: OpenXLA, "StableHLO Specification".
"""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Dialect, Operation, OpTraits, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure

_OPERATORS = """
abs add all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference
batch_norm_training bitcast_convert broadcast broadcast_in_dim case cbrt ceil cholesky clamp
collective_permute compare complex composite concatenate constant convert convolution cosine
count_leading_zeros custom_call divide dot_general dynamic_broadcast_in_dim dynamic_conv
dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice
exponential exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag
infeed iota is_finite log log_plus_one logistic map maximum minimum multiply negate not
optimization_barrier or outfeed pad partition_id popcnt power real real_dynamic_slice recv reduce
reduce_precision reduce_scatter reduce_window remainder replica_id reshape reverse rng
rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter send
shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh
transpose triangular_solve tuple uniform_dequantize uniform_quantize while xor
""".split()  # noqa: SIM905  twenty lines as a list

_CHLO_OPERATORS = """
acos acosh asin asinh atan atanh conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf
lgamma ragged_dot sinh square tan top_k
""".split()  # noqa: SIM905  three lines as a list
"""Those of CHLO, a dialect above StableHLO, that exporters write."""


class StablehloAttr(ParametrizedAttribute):
    """An attribute of the dialect: what stands in its angle brackets."""

    text: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads `<text>` of `#stablehlo.name<text>`, or the word of `#stablehlo<name word>`."""
        word = parser.parse_optional_identifier()
        if word is None:
            word = parser._parse_dialect_symbol_body()  # pyright: ignore[reportPrivateUsage]
        return [StringAttr(word)]

    def print_parameters(self, printer: Printer) -> None:
        """Prints `<text>`."""
        with printer.in_angle_brackets():
            printer.print_string(self.text.data)


@irdl_attr_definition
class ConvolutionDimsAttr(StablehloAttr):
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: what the dims of a convolution are."""

    name = "stablehlo.conv"


@irdl_attr_definition
class DotDimsAttr(StablehloAttr):
    """The batching and contracting dims of `dot_general`."""

    name = "stablehlo.dot"


@irdl_attr_definition
class GatherDimsAttr(StablehloAttr):
    """What the dims of a `gather` are."""

    name = "stablehlo.gather"


@irdl_attr_definition
class ScatterDimsAttr(StablehloAttr):
    """What the dims of a `scatter` are."""

    name = "stablehlo.scatter"


@irdl_attr_definition
class ComparisonDirectionAttr(StablehloAttr):
    """`EQ`, `NE`, `GE`, `GT`, `LE` or `LT`."""

    name = "stablehlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(StablehloAttr):
    """`FLOAT`, `TOTALORDER`, `SIGNED` or `UNSIGNED`."""

    name = "stablehlo.comparison_type"


@irdl_attr_definition
class PrecisionAttr(StablehloAttr):
    """`DEFAULT`, `HIGH` or `HIGHEST`: a hint, which braid need not follow."""

    name = "stablehlo.precision"


@irdl_attr_definition
class AlgorithmAttr(StablehloAttr):
    """How precisely a product is computed."""

    name = "stablehlo.dot_algorithm"


@irdl_attr_definition
class ResultAccuracyAttr(StablehloAttr):
    """How precisely an elementary function is computed."""

    name = "stablehlo.result_accuracy"


@irdl_attr_definition
class ApiVersionAttr(StablehloAttr):
    """The calling convention of a `custom_call`."""

    name = "stablehlo.custom_call_api_version"


class StablehloOp(Operation):
    """Any op of StableHLO; read and printed in generic form only."""

    traits = OpTraits(lambda: (Pure(),))
    SHORT: ClassVar[str]
    """The name without that of the dialect."""

    def field(self, name: str) -> Attribute | None:
        """A property or attribute, None where there is none."""
        return self.properties.get(name, self.attributes.get(name))

    @classmethod
    def parse(cls, parser: Parser) -> "StablehloOp":
        """Leaves the custom form to upstream."""
        parser.raise_error(f"expected the generic form, '\"{cls.name}\"(…)'")


class ReturnOp(StablehloOp):
    """`stablehlo.return`, which ends all regions."""

    name = "stablehlo.return"
    SHORT = "return"

    traits = OpTraits(lambda: (Pure(), IsTerminator()))


def _op(name: str, dialect: str = "stablehlo") -> type[StablehloOp]:
    return type(f"{dialect}_{name}", (StablehloOp,), {"name": f"{dialect}.{name}", "SHORT": name})


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
]

Stablehlo = Dialect("stablehlo", [*map(_op, _OPERATORS), ReturnOp], _ATTRIBUTES)


Chlo = Dialect("chlo", [_op(name, "chlo") for name in _CHLO_OPERATORS], [])
