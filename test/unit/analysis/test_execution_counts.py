"""Expected executions of blocks multiply through nesting; without a profile all count once."""

import pytest
from xdsl.dialects import scf

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context

NESTED = """
func.func @main(%c: i1, %n: index) {{
  %zero = arith.constant 0 : index
  scf.for %i = %zero to %n step %n {{
    scf.if %c {{
      "test.then"() : () -> ()
    }} else {{
      "test.else"() : () -> ()
    }} {{{branch}}}
  }} {{{loop}}}
  "scf.while"() ({{
    "scf.condition"(%c) : (i1) -> ()
  }}, {{
    "scf.yield"() : () -> ()
  }}) {{{loop}}} : () -> ()
  func.return
}}
"""

BRANCH, LOOP = "braid.branch_probability = 0.25 : f64", "braid.trip_count = 8.0 : f64"


def counts(branch: str, loop: str, **options: float) -> list[float]:
    """Of the then block, the else block, and the two regions of the while loop."""
    context = make_context(allow_unregistered=True)
    module = parse_mlir(context, NESTED.format(branch=branch, loop=loop), "n.mlir").module
    result = ExecutionCounts.of(module, **options)
    blocks = [
        region.block
        for op in module.walk()
        if isinstance(op, scf.IfOp | scf.WhileOp)
        for region in op.regions
    ]
    return [result.of_block(block) for block in blocks]


@pytest.mark.parametrize(
    ("branch", "loop", "expected"),
    [
        ("", "", [1, 1, 1, 1]),
        (BRANCH, LOOP, [2, 6, 9, 8]),
        ("", LOOP, [4, 4, 9, 8]),
        (BRANCH, "", [2.5, 7.5, 11, 10]),
    ],
)
def test_counts(branch: str, loop: str, expected: list[float]) -> None:
    assert counts(branch, loop) == expected


def test_the_default_of_loops_without_counts() -> None:
    assert counts(BRANCH, "", default_trip_count=4.0) == [1, 3, 5, 4]


def test_ignoring_a_profile() -> None:
    context = make_context(allow_unregistered=True)
    module = parse_mlir(context, NESTED.format(branch=BRANCH, loop=LOOP), "n.mlir").module
    ones = ExecutionCounts.ones()
    blocks = [block for op in module.walk() for r in op.regions for block in r.blocks]
    assert {ones.of_block(block) for block in blocks} == {1.0}
