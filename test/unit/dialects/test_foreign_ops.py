"""Messages about mistakes in the ops of other packages."""

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, Float64Type, FloatAttr, TensorType
from xdsl.dialects.func import Func
from xdsl.ir import Dialect
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.analysis.interpreter import interpret
from braid.analysis.structure.verification import InvalidIRError, verify_module
from braid.dialects.braid.base import StructuredOp, element_type_of, shape_of
from braid.dialects.braid.normalization import pointwise_stage
from braid.dialects.braid.scalar import Apply, Argument
from braid.dialects.braid.structure import OperandSource, Stage, StageSource, Structure
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.support.errors import BraidError

TEXT = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = other.clip %x {limit = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
"""

INPUT = OperandSource(0)


@irdl_op_definition
class ClipOp(StructuredOp):
    name = "other.clip"

    input = operand_def(TensorType)
    limit = attr_def(FloatAttr[Float64Type])
    output = result_def(TensorType)

    def infer_result_types(self):
        return [TensorType(element_type_of(self.input), shape_of(self.input))]

    def evaluate(self, *operands):
        return (np.minimum(operands[0], np.float32(self.limit.value.data)),)

    def structure(self):
        return Structure((stage(self),), (0,))


def stage(op, *, argument=0, source=INPUT, shape=None) -> Stage:
    type = element_type_of(op.input)
    shape = shape or shape_of(op.input)
    body = Apply("maximum", (Argument(0), Argument(argument)), type)
    return pointwise_stage(shape, [(source, shape)], body, type)


@irdl_op_definition
class HalfOp(StructuredOp):
    name = "other.half"

    input = operand_def(TensorType)
    output = result_def(TensorType)

    def infer_result_types(self):
        return [self.input.type]

    def structure(self):
        return Structure((stage(self),), (0,))


def parse(text: str):
    context = Context()
    for dialect in (Builtin, Func, Dialect("other", [ClipOp, HalfOp])):
        context.load_dialect(dialect)
    return parse_mlir(context, text, "m.mlir").module


def test_a_right_op_is_taken() -> None:
    verify_module(parse(TEXT))


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        (lambda op: Structure((stage(op),), (1,)), "result 0 is of stage 1, there are 1"),
        (lambda op: Structure((stage(op),), (0, 0)), "the stages of 2 results, the op has 1"),
        (lambda op: Structure((stage(op, argument=2),), (0,)), "uses Argument(2), there are 1"),
        (
            lambda op: Structure((stage(op, source=OperandSource(3)),), (0,)),
            "read 0: operand 3, the op has 1",
        ),
        (
            lambda op: Structure((stage(op, source=StageSource(0)),), (0,)),
            "stage 0, which does not stand before it",
        ),
        (lambda op: Structure((stage(op, shape=(3, 2)),), (0,)), "stage 0 gives [3, 2] of f32"),
        (lambda op: Structure((stage(op, shape=(6,)),), (0,)), "its map gives 1 indices"),
        (lambda op: op.nothing, "AttributeError"),
    ],
)
def test_a_structure_that_does_not_fit_is_refused(structure, said, monkeypatch) -> None:
    monkeypatch.setattr(ClipOp, "structure", structure)
    with pytest.raises(InvalidIRError) as raised:
        verify_module(parse(TEXT))
    assert "'other.clip' op has a wrong 'structure'" in raised.value.message
    assert said in raised.value.message
    assert str(raised.value.location) == "m.mlir:3:8"


@pytest.mark.parametrize(
    ("evaluate", "said"),
    [
        (lambda op, x: x, "gave ndarray, expected a tuple of 1"),
        (lambda op, x: (x, x), "gave 2 arrays, expected a tuple of 1"),
        (lambda op, x: (1.5,), "gave float, expected an array"),
        (lambda op, x: (x.astype(np.float64),), "gave float64[2, 3], expected tensor<2x3xf32>"),
        (lambda op, x: x.nothing, "raised AttributeError"),
    ],
)
def test_what_evaluate_gives_is_checked(evaluate, said, monkeypatch) -> None:
    monkeypatch.setattr(ClipOp, "evaluate", evaluate)
    with pytest.raises(BraidError) as raised:
        interpret(parse(TEXT), [np.ones((2, 3), np.float32)])
    assert f"'evaluate' of 'other.clip' {said}" in raised.value.message
    assert str(raised.value.location) == "m.mlir:3:8"


def test_a_wrong_attribute_is_named_where_its_op_is() -> None:
    with pytest.raises(MLIRSyntaxError) as raised:
        parse(TEXT.replace("1.0 : f64", "1.0 : f32"))
    assert raised.value.message.startswith("'other.clip' op attribute 'limit': f32 ")
    assert str(raised.value.location) == "m.mlir:3:8"


def test_a_class_that_is_not_complete_is_named() -> None:
    with pytest.raises(BraidError) as raised:
        parse(TEXT.replace("other.clip", "other.half"))
    assert raised.value.message == "the class of op 'other.half' has no 'evaluate'"
    assert raised.value.location is None and "HalfOp" in (raised.value.hint or "")
