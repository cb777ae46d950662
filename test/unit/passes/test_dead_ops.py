"""Dead ops are those that repeated runs of xDSL's liveness find."""

from hypothesis import given
from xdsl.transforms.dead_code_elimination import region_dce

from braid.frontends.mlir import parse_mlir
from braid.passes.canonicalize.dead_ops import erase_dead_ops
from braid.universe import make_context
from test.unit.passes.random_graphs import programs

BLOCKS = """
func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %dead = "braid.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %before = "braid.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  cf.cond_br %c, ^one, ^two
^one:
  %also_dead = "braid.neg"(%before) : (tensor<4xf32>) -> tensor<4xf32>
  cf.br ^end(%before : tensor<4xf32>)
^two:
  cf.br ^end(%x : tensor<4xf32>)
^end(%y: tensor<4xf32>):
  return %y : tensor<4xf32>
}
"""


def check(text: str) -> None:
    """Compare the remaining ops with the expected ones; return whether there are fewer."""
    ours, theirs = (parse_mlir(make_context(), text, "t.mlir").module for _ in range(2))
    before = str(ours)
    has_erased = erase_dead_ops(ours.body)
    # For xDSL an op in a branch is live, so its operands become dead only once the branch is
    # removed.
    while region_dce(theirs.body):
        pass
    assert str(ours) == str(theirs)
    assert has_erased == (str(ours) != before)
    assert not erase_dead_ops(ours.body)


@given(programs())
def test_what_is_left_is_what_liveness_leaves(program) -> None:
    check(program[0])


def test_blocks_are_looked_at_together() -> None:
    check(BLOCKS)
