"""Mapping lists: priorities per op, what restricts entries, and mistakes in them."""

from pathlib import Path

import pytest

from braid.frontends.mlir import parse_mlir
from braid.passes.partition.assign_devices import AssignDevicesPass
from braid.passes.partition.requests import Pin
from braid.support.errors import BraidError
from braid.targets.costs.backend_support import priority_on
from braid.universe import make_context

TARGET = """
name = "toy"
[[backend]]
name = "npu"
operations = OPERATIONS
[[backend.unit]]
name = "array"
resource = "flops"
rate = 2e9
"""

TEXT = """
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = braid.matmul %x, %y : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  func.return %0 : tensor<4x4xf32>
}
"""


@pytest.mark.parametrize(
    ("operations", "priority"),
    [
        ('["matmul"]', 1),
        ('["braid.matmul"]', 1),
        ("{matmul = 3}", 3),
        ('{"*" = 5}', 5),
        ("{exp = 1}", None),
        ('{matmul = {priority = 2, types = ["f32"]}}', 2),
        ('{matmul = {types = ["i8"]}}', None),
        ('{matmul = [{types = ["i8"]}, {priority = 4}]}', 4),
        ('{matmul = {types = ["i8"]}, "*" = 7}', 7),
        ("{matmul = {at_most = {dim1 = 8}}}", 1),
        ("{matmul = {at_most = {dim1 = 7}}}", None),
        ("{matmul = {at_least = {elements = 32}, at_most = {elements = 32}}}", 1),
        ("{matmul = {at_least = {elements = 33}}}", None),
        ("{matmul = {at_least = {rank = 2}}}", 1),
        ("{matmul = {at_most = {bytes = 319}}}", None),
        ("{matmul = {at_most = {bytes = 320}}}", 1),
        ("{relu = 1}", None),
    ],
)
def test_the_first_entry_that_takes_an_op_counts(load_text, operations, priority) -> None:
    npu = load_text(TARGET.replace("OPERATIONS", operations)).backend("npu")
    module = parse_mlir(make_context(), TEXT, "test.mlir").module
    (op,) = (op for op in module.walk() if op.name == "braid.matmul")
    assert priority_on(op, npu) == priority


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        (
            "{matmul = {at_most = {kernal = 5}}}",
            "bounds 'kernal' of 'matmul'",
        ),
        ("{matmul = true}", "'matmul' is True, expected a priority"),
        ("{matmul = -1}", "a priority is -1; 1 is the best"),
        ('{matmul = {types = "f32"}}', "'types' is 'f32', expected a list"),
        ('{matmul = {at_most = {rank = "two"}}}', "'rank' is 'two', expected a number"),
        ("{matmul = {attributes = {kind = 1.5}}}", "attribute 'kind' is 1.5"),
        ('{matmul = {types = ["f33"]}}', "'f33', not an element type\nhint: did you mean 'f32'"),
        ("{matmul = {types = []}}", "'types' is empty"),
        (
            "{matmul = {at_least = {rank = 3}, at_most = {rank = 2}}}",
            "'rank' is to be at least 3, and less than that",
        ),
        ('{"" = 1}', "an op without a name"),
        ('["matmul", 3]', "expected a list of strings"),
        ('"matmul"', "'operations' is 'matmul', expected a list"),
        (
            '{"braid.matmull" = 1}',
            "names 'braid.matmull', no op\nhint: did you",
        ),
    ],
)
def test_mistakes(tmp_path: Path, load_text, operations: str, message: str) -> None:
    context = make_context()
    module = parse_mlir(context, TEXT, "test.mlir").module
    with pytest.raises(BraidError, match=message):
        load_text(TARGET.replace("OPERATIONS", operations))
        AssignDevicesPass(target=str(tmp_path / "toy.toml")).apply(context, module)


def test_a_maximum_with_zero_is_a_relu(load_text) -> None:  # type: ignore[no-untyped-def]
    npu = load_text(TARGET.replace("OPERATIONS", '{relu = 2, conv = 1, "*" = 9}')).backend("npu")
    lines = [
        f"%{n} = braid.constant {{value = dense<{value}> : {kind}}} : {kind}\n"
        f"%y{n} = braid.maximum %x, %{n} : (tensor<4xf32>, {kind}) -> tensor<4xf32>"
        for n, (value, kind) in enumerate(
            [("0.0", "tensor<1xf32>"), ("0.0", "tensor<4xf32>"), ("0.5", "tensor<1xf32>"),
             ("[0.0, 0.0, 0.0, 1.0]", "tensor<4xf32>")]
        )
    ]  # fmt: skip
    text = "func.func @main(%x: tensor<4xf32>) {" + "\n".join(lines) + "\nfunc.return }"
    module = parse_mlir(make_context(), text, "relu.mlir").module
    ops = [op for op in module.walk() if op.name == "braid.maximum"]
    assert [priority_on(op, npu) for op in ops] == [2, 2, 9, 9]
    pin = Pin("op:relu", "npu")
    assert [pin.is_about(op) for op in ops] == [True, True, False, False]
