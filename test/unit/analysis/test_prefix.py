"""Whether a function computes the first elements of another function's results."""

import pytest

from braid.analysis.structure.prefix import NotAPrefix, prove_prefix
from braid.driver.sources.signature import entry_of
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context


def prove(text: str, small: int, large: int) -> None:
    """Prove the text with N as the small, then the large size; parameters agree by their keys.

    D stands for twice, P for one more than the size.
    """
    functions = [
        entry_of(parse_mlir(make_context(), _sized(text, size), "m.mlir").module)
        for size in (small, large)
    ]
    prove_prefix(*functions, lambda a, b: a == b)


def _sized(text: str, size: int) -> str:
    sizes = {"D": 2 * size, "P": size + 1, "N": size}
    return "".join(str(sizes.get(letter, letter)) for letter in text)


def function(body: str, argument: str = "Nx4xf32", result: str = "Nx4xf32") -> str:
    return (
        f"func.func @main(%x: tensor<{argument}>) -> tensor<{result}> {{\n{body}\n"
        f"  return %y : tensor<{result}>\n}}"
    )


PROVEN = {
    "elementwise": function("%y = braid.exp %x : (tensor<Nx4xf32>) -> tensor<Nx4xf32>"),
    "softmax of another dim": function(
        "%y = braid.softmax %x {dim = 1 : i64} : (tensor<Nx4xf32>) -> tensor<Nx4xf32>"
    ),
    "flattening the first dims": function(
        "%a = braid.reshape %x : (tensor<Nx4x2xf32>) -> tensor<Nx8xf32>\n"
        "%y = braid.reshape %a : (tensor<Nx8xf32>) -> tensor<Nx2x4xf32>",
        "Nx4x2xf32",
        "Nx2x4xf32",
    ),
    "switch": function(
        """%k = arith.constant 2 : index
           %y = scf.index_switch %k -> tensor<Nx4xf32>
           case 1 {
             %a = braid.exp %x : (tensor<Nx4xf32>) -> tensor<Nx4xf32>
             scf.yield %a : tensor<Nx4xf32>
           }
           default {
             scf.yield %x : tensor<Nx4xf32>
           }"""
    ),
    "loop": function(
        """%zero = arith.constant 0 : index
           %one = arith.constant 1 : index
           %three = arith.constant 3 : index
           %y = scf.for %i = %zero to %three step %one iter_args(%a = %x) -> (tensor<Nx4xf32>) {
             %b = braid.exp %a : (tensor<Nx4xf32>) -> tensor<Nx4xf32>
             scf.yield %b : tensor<Nx4xf32>
           }"""
    ),
    "concatenation of another dim": function(
        "%y = braid.concat %x, %x {dim = 1 : i64} : (tensor<Nx4xf32>, tensor<Nx4xf32>) "
        "-> tensor<Nx8xf32>",
        result="Nx8xf32",
    ),
    "parameters": function(
        """%w = braid.parameter {key = "w"} : tensor<4x4xf32>
           %y = braid.matmul %x, %w : (tensor<Nx4xf32>, tensor<4x4xf32>) -> tensor<Nx4xf32>"""
    ),
}

UNPROVEN = {
    "softmax": (
        function("%y = braid.softmax %x {dim = 0 : i64} : (tensor<Nx4xf32>) -> tensor<Nx4xf32>"),
        "sums over the dim",
    ),
    "padding": (
        function(
            "%y = braid.pad %x {low = array<i64: 0, 0>, high = array<i64: 1, 0>, value = 0.0 : f32}"
            " : (tensor<Nx4xf32>) -> tensor<Px4xf32>",
            result="Px4xf32",
        ),
        "pads the dim itself",
    ),
    "concatenation": (
        function(
            "%y = braid.concat %x, %x {dim = 0 : i64} : (tensor<Nx4xf32>, tensor<Nx4xf32>) "
            "-> tensor<Dx4xf32>",
            result="Dx4xf32",
        ),
        "joins tensors along the dim",
    ),
    "transposing reshape": (
        function("%y = braid.reshape %x : (tensor<Nx4xf32>) -> tensor<4xNxf32>", result="4xNxf32"),
        "moves the dim to another position",
    ),
    "constant": (
        function(
            """%c = braid.constant {value = dense<N.0> : tensor<1x1xf32>} : tensor<1x1xf32>
               %y = braid.mul %x, %c : (tensor<Nx4xf32>, tensor<1x1xf32>) -> tensor<Nx4xf32>"""
        ),
        "is a constant that depends on the size",
    ),
    "loop with a size-dependent trip count": (
        function(
            """%zero = arith.constant 0 : index
               %one = arith.constant 1 : index
               %n = arith.constant N : index
               %y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<Nx4xf32>) {
                 %b = braid.exp %a : (tensor<Nx4xf32>) -> tensor<Nx4xf32>
                 scf.yield %b : tensor<Nx4xf32>
               }"""
        ),
        "arith.constant",
    ),
}


@pytest.mark.parametrize("kind", PROVEN)
@pytest.mark.parametrize("small", [1, 2, 3])
def test_proven(kind: str, small: int) -> None:
    prove(PROVEN[kind], small, 4)


@pytest.mark.parametrize("kind", UNPROVEN)
def test_unproven(kind: str) -> None:
    text, reason = UNPROVEN[kind]
    with pytest.raises(NotAPrefix, match=reason):
        prove(text, 2, 3)
    prove(text, 3, 3)
