"""Loop nests that access their operands out of bounds are rejected."""

import pytest

import braid
from braid.support.errors import BraidError

NEST = """
#i = affine_map<(d0) -> (d0)>
#m = affine_map<(d0) -> ({place})>
func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {{
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.generic {{indexing_maps = [#i, #m, #i], iterator_types = ["parallel"]}}
      ins(%x, %y : tensor<4xi32>, tensor<4xi32>) outs(%e : tensor<4xi32>) {{
  ^bb0(%a: i32, %b: i32, %c: i32):
    {body}
    linalg.yield %v : i32
  }} -> tensor<4xi32>
  return %r : tensor<4xi32>
}}"""


def test_nests_that_leave_their_operands_are_refused() -> None:
    """Neither the first nor the last iteration of this map is outside, as upstream looks."""
    place, body = "(d0 * 1000000) mod 3000000", "%v = arith.addi %a, %b : i32"
    with pytest.raises(BraidError, match="at 0 to 2000000"):
        braid.compile(NEST.format(place=place, body=body).encode(), jobs=1)
