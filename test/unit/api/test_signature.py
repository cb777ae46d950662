"""Modules that are not models: one diagnostic at the function, whoever is asked first."""

from collections.abc import Callable

import numpy as np
import pytest

import braid
from braid.driver.compile_source import emit_model
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context

IDENTITY = "(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
CASES = {
    "nothing": ("builtin.module {}", "one public function, this one has none"),
    "private": (f"func.func private @main{IDENTITY}", "one public function, this one has none"),
    "two": (f"func.func @a{IDENTITY}\nfunc.func @b{IDENTITY}", "this one has @a, @b"),
    "declared": ("func.func @main(tensor<4xf32>) -> tensor<4xf32>", "'@main' has no body"),
    "branches": (
        """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          cf.br ^bb1
        ^bb1:
          func.return %x : tensor<4xf32>
        }""",
        "'@main' has 2 blocks, expected one",
    ),
    "scalar": ("func.func @main(%x: f32) { func.return }", "'input0' .* type f32, expected a rank"),
    "unranked": (
        "func.func @main(%x: tensor<*xf32>) { func.return }",
        r"type tensor<\*xf32>, expected a ranked tensor",
    ),
    "rank": (
        f"func.func @main(%x: tensor<{'1x' * 27}f32>) {{ func.return }}",
        "'func.func' op a tensor has 27 dims, expected at most 26",
    ),
    "names": (
        """func.func @main(
            %x: tensor<4xf32> {braid.name = "x"}, %y: tensor<4xf32> {braid.name = "x"}
        ) -> tensor<4xf32> { func.return %x : tensor<4xf32> }""",
        "several inputs or several outputs of the model are named 'x'",
    ),
}
USERS: dict[str, Callable[..., object]] = {
    "compile": lambda module: braid.compile(module, jobs=1),
    "emit": lambda module: emit_model(module, "mlir"),
    "interpret": braid.interpret,
}


@pytest.mark.parametrize("use", USERS.values(), ids=USERS.keys())
@pytest.mark.parametrize(("text", "message"), CASES.values(), ids=CASES.keys())
def test_what_is_no_model_is_refused(text: str, message: str, use: Callable[..., object]) -> None:
    module = parse_mlir(make_context(), text, "m.mlir").module
    with pytest.raises(BraidError, match=message) as caught:
        use(module)
    assert caught.value.location is not None and caught.value.location.file == "m.mlir"


def test_a_parameter_has_one_type() -> None:
    text = """func.func @main() -> (tensor<4xf32>, tensor<8xf32>) {
      %0 = braid.parameter {key = "w"} : tensor<4xf32>
      %1 = braid.parameter {key = "w"} : tensor<8xf32>
      func.return %0, %1 : tensor<4xf32>, tensor<8xf32>
    }"""
    with pytest.raises(BraidError, match="'w' has type tensor<8xf32>, and tensor<4xf32>"):
        braid.compile(parse_mlir(make_context(), text, "m.mlir").module, jobs=1)


@pytest.mark.parametrize("calls", [1, 2])
def test_functions_of_a_model_are_inlined(calls: int) -> None:
    body = "\n".join(
        f"%{i + 1} = func.call @helper(%{i}) : (tensor<4xf32>) -> tensor<4xf32>"
        for i in range(calls)
    )
    text = f"""func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %y = braid.neg %x : (tensor<4xf32>) -> tensor<4xf32>
      %z = braid.exp %y : (tensor<4xf32>) -> tensor<4xf32>
      func.return %z : tensor<4xf32>
    }}
    func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{
      {body}
      func.return %{calls} : tensor<4xf32>
    }}"""
    model = braid.compile(parse_mlir(make_context(), text, "m.mlir").module, jobs=1)
    x = expected = np.arange(4, dtype=np.float32)
    for _ in range(calls):
        expected = np.exp(-expected)
    np.testing.assert_allclose(model(x), expected, rtol=1e-6)


def test_the_hint_is_one_that_can_be_followed() -> None:
    hints: dict[str, str | None] = {}
    for type in ("f32", "memref<4xf32>"):
        text = f"func.func @main(%x: {type}) {{ func.return }}"
        with pytest.raises(BraidError) as caught:
            braid.interpret(parse_mlir(make_context(), text, "m.mlir").module)
        hints[type] = caught.value.hint
    assert hints == {
        "f32": "take a tensor<f32> and read it with tensor.extract",
        "memref<4xf32>": None,
    }
