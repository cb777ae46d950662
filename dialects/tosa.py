"""The syntax of TOSA, which `convert-tosa-to-braid` reads.

xDSL has a part of the dialect, at an older version; here, all ops of TOSA 1.0 are read in
upstream's custom and generic forms. Source: MLIR, "'tosa' Dialect".
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Dialect, OpTraits, ParametrizedAttribute, Region, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure

from braid.dialects.foreign import ForeignOp, TextAttr, foreign_ops

_OPERATORS = """
abs add apply_scale argmax arithmetic_right_shift avg_pool2d bitwise_and bitwise_not bitwise_or
bitwise_xor cast ceil clamp clz concat const const_shape conv2d conv3d cos custom depthwise_conv2d
dim equal erf exp fft2d floor gather greater greater_equal identity intdiv log logical_and
logical_left_shift logical_not logical_or logical_right_shift logical_xor matmul matmul_t
max_pool2d maximum minimum mul negate pad pow reciprocal reduce_all reduce_any reduce_max reduce_min
reduce_product reduce_sum rescale reshape resize reverse rfft2d row_gather rsqrt scatter select
sigmoid sin slice sub table tanh tile transpose transpose_conv2d
""".split()  # noqa: SIM905  twenty lines as a list


@irdl_attr_definition
class ShapeType(ParametrizedAttribute, TypeAttribute):
    """`!tosa.shape<N>`: a list of N extents that is known before a program runs."""

    name = "tosa.shape"

    rank: IntegerAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse `<N>`."""
        with parser.in_angle_brackets():
            return [IntegerAttr(parser.parse_integer(), i64)]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<N>`."""
        with printer.in_angle_brackets():
            printer.print_int(self.rank.value.data)


@irdl_attr_definition
class NanModeAttr(TextAttr):
    """The treatment of NaNs: `PROPAGATE` or `IGNORE`."""

    name = "tosa.nan_mode"


@irdl_attr_definition
class ResizeModeAttr(TextAttr):
    """The interpolation of `tosa.resize`: `NEAREST_NEIGHBOR` or `BILINEAR`."""

    name = "tosa.resize_mode"


@irdl_attr_definition
class RoundingModeAttr(TextAttr):
    """The rounding of `tosa.rescale`: `SINGLE_ROUND`, `DOUBLE_ROUND` or `INEXACT_ROUND`."""

    name = "tosa.rounding_mode"


_MODES: dict[str, type[TextAttr]] = {
    "nan_mode": NanModeAttr,
    "mode": ResizeModeAttr,
    "rounding_mode": RoundingModeAttr,
}


class TosaOp(ForeignOp):
    """Any op of TOSA."""

    @classmethod
    def parse(cls, parser: Parser) -> "TosaOp":
        """Parse `operands attr-dict : functional-type`."""
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        data = _parse_dictionary(parser)
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        return cls.create(
            operands=parser.resolve_operands(operands or [], type.inputs.data, parser.pos),
            result_types=type.outputs.data,
            properties={name: value for name, value in data.items() if "." not in name},
            attributes={name: value for name, value in data.items() if "." in name},
        )


class YieldOp(TosaOp):
    """`tosa.yield`, which ends the regions of `cond_if` and `while_loop`."""

    name = "tosa.yield"

    traits = OpTraits(lambda: (Pure(), IsTerminator()))

    @classmethod
    def parse(cls, parser: Parser) -> "YieldOp":
        """Parse `values : types`."""
        values = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        if not values:
            return cls.create()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.create(operands=parser.resolve_operands(values, types, parser.pos))


class CondIfOp(TosaOp):
    """`tosa.cond_if`: one of two regions."""

    name = "tosa.cond_if"

    traits = OpTraits(lambda: ())

    @classmethod
    def parse(cls, parser: Parser) -> "CondIfOp":
        """Parse `cond (args = values) : type (types) -> types { … } else { … }`."""
        condition = parser.parse_unresolved_operand()
        names, values = _parse_bindings(parser)
        parser.parse_punctuation(":")
        condition_type = parser.parse_type()
        inputs, outputs = _parse_optional_function_type(parser)
        then = _parse_region(parser, names, inputs)
        parser.parse_keyword("else")
        otherwise = _parse_region(parser, names, inputs)
        operands = [condition, *values]
        return cls.create(
            operands=parser.resolve_operands(operands, [condition_type, *inputs], parser.pos),
            result_types=outputs,
            regions=[then, otherwise],
        )


class WhileLoopOp(TosaOp):
    """`tosa.while_loop`: a region for the condition, and one for the body."""

    name = "tosa.while_loop"

    traits = OpTraits(lambda: ())

    @classmethod
    def parse(cls, parser: Parser) -> "WhileLoopOp":
        """Parse `(args = values) : (types) -> types { … } do { … }`."""
        names, values = _parse_bindings(parser)
        parser.parse_punctuation(":")
        inputs, outputs = _parse_optional_function_type(parser)
        condition = _parse_region(parser, names, inputs)
        parser.parse_keyword("do")
        body = _parse_region(parser, names, inputs)
        return cls.create(
            operands=parser.resolve_operands(values, inputs, parser.pos),
            result_types=outputs,
            regions=[condition, body],
        )


def _parse_dictionary(parser: Parser) -> dict[str, Attribute]:
    """Parse an attribute dictionary, in which a mode may be a mere word.

    Names of other dialects have a dot.
    """

    def entry() -> tuple[str, Attribute]:
        key = parser.parse_identifier()
        parser.parse_punctuation("=")
        if key in _MODES and (word := parser.parse_optional_identifier()) is not None:
            return key, _MODES[key](StringAttr(word))
        return key, parser.parse_attribute()

    entries = parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, entry)
    return dict(entries or ())


def _parse_bindings(parser: Parser) -> tuple[list[UnresolvedOperand], list[UnresolvedOperand]]:
    """Parse `(%a = %x, …)` and return the block arguments, and the values they get."""

    def binding() -> tuple[UnresolvedOperand, UnresolvedOperand]:
        argument = parser.parse_unresolved_operand()
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, binding) or []
    return [argument for argument, _ in pairs], [value for _, value in pairs]


def _parse_optional_function_type(
    parser: Parser,
) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    """Parse `(types) -> types`, or `-> types` where there are no inputs.

    Nothing is written if there are no results either.
    """
    if parser.parse_optional_punctuation("->") is not None:
        results = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        )
        return [], [parser.parse_type()] if results is None else results
    if parser.parse_optional_punctuation("{") is not None:
        parser.raise_error("expected the types of the inputs and results")
    type = parser.parse_function_type()
    return type.inputs.data, type.outputs.data


def _parse_region(
    parser: Parser, arguments: Sequence[UnresolvedOperand], types: Sequence[Attribute]
) -> Region:
    """Parse a region whose entry block has the arguments, unless it has a label with its own."""
    text = parser.lexer.input.content
    if text[parser.pos + 1 :].lstrip().startswith("^"):
        return parser.parse_region()
    bound = [
        parser.Argument(argument.span, type)
        for argument, type in zip(arguments, types, strict=True)
    ]
    return parser.parse_region(bound)


Tosa = Dialect(
    "tosa",
    [*foreign_ops(TosaOp, "tosa", _OPERATORS), YieldOp, CondIfOp, WhileLoopOp],
    [ShapeType, NanModeAttr, ResizeModeAttr, RoundingModeAttr],
)
