"""Text as upstream prints it: locations, resources, line ends."""

import numpy as np
import pytest

import braid
from braid.support.errors import BraidError, SourceLocation

EXP = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc({location})
  func.return %y : tensor<4xf32>
}}
{after}
"""
X = np.array([0, 1, -1, 2], np.float32)


@pytest.mark.parametrize(
    ("location", "after"),
    [
        ("#loc1", '#loc1 = loc("m.py":7:9)'),
        ('"m.py":7:9 to 8:4', ""),
        ('"m.py":7:9 to :12', ""),
        ('fused<{a = 1 : i64}>["x", "m.py":7:9]', ""),
        ('"name"(#loc2)', '#loc1 = loc("m.py":7:9)\n#loc2 = loc(callsite(#loc1 at "c.py":1:1))'),
    ],
)
def test_locations_are_read(location: str, after: str) -> None:
    text = EXP.format(location=location, after=after)
    found = braid.compile(text.encode())(X)
    np.testing.assert_allclose(found, np.exp(X), rtol=1e-6)
    wrong = text.replace("tensor<4xf32> loc", "tensor<5xf32> loc")
    with pytest.raises(BraidError) as caught:
        braid.compile(wrong.encode())
    assert caught.value.location in (SourceLocation("m.py", 7, 9), SourceLocation("<bytes>", 3, 15))


@pytest.mark.parametrize("after", ["", "#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)"])
def test_an_alias_without_a_location_is_a_diagnostic(after: str) -> None:
    with pytest.raises(BraidError, match="alias"):
        braid.compile(EXP.format(location="#loc1", after=after).encode())


def test_line_ends_of_windows() -> None:
    text = EXP.format(location='"m.py":7:9', after="").replace("\n", "\r\n")
    np.testing.assert_allclose(braid.compile(text.encode())(X), np.exp(X), rtol=1e-6)


RESOURCE = """
{{-# dialect_resources: {{ builtin: {{ bias: "0x04000000{bytes}" }} }} #-}}
"""
ONES = "0000803F" * 4


@pytest.mark.parametrize(
    "op",
    [
        "%b = arith.constant dense_resource<bias> : tensor<4xf32>",
        '%b = "tosa.const"() {values = dense_resource<bias> : tensor<4xf32>} : () -> tensor<4xf32>',
        "%b = stablehlo.constant dense_resource<bias> : tensor<4xf32>",
    ],
)
def test_resources_are_read(op: str) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  {op}
  %y = arith.addf %x, %b : tensor<4xf32>
  return %y : tensor<4xf32>
}}"""
    module = (text + RESOURCE.format(bytes=ONES)).encode()
    np.testing.assert_array_equal(braid.compile(module)(X), X + 1)
    for wrong in (text, text + RESOURCE.format(bytes=ONES[:-8])):
        with pytest.raises(BraidError, match="resource"):
            braid.compile(wrong.encode())


def test_a_function_may_say_that_it_is_public() -> None:
    text = b"""func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = braid.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
    np.testing.assert_array_equal(braid.compile(text)(-np.ones(4, np.float32)), np.ones(4))
