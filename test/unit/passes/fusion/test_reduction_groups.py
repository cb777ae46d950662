"""Reductions take what makes their operands along, where a kernel is made for both."""

import pytest
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.frontends.mlir import parse_mlir
from braid.passes.fusion.select_fusion import SelectFusionPass
from braid.universe import make_context

WIDE, NARROW = "tensor<64x100xf32>", "tensor<64x1xf32>"
SUM = f'braid.reduce %a {{kind = "add", dims = array<i64: 1>}} : ({WIDE}) -> {NARROW}'


def groups(ops: str, result: str = "%s", type: str = NARROW) -> list[int]:
    """Return the number of each op's group."""
    text = f"func.func @main(%x: {WIDE}) -> {type} {{\n{ops}\nfunc.return {result} : {type}\n}}"
    context = make_context()
    module = parse_mlir(context, text, "test.mlir").module
    SelectFusionPass().apply(context, module)
    function = next(op for op in module.walk() if isinstance(op, FuncOp))
    return [
        op.attributes[FUSION_GROUP].value.data  # type: ignore[union-attr]
        for op in function.body.block.ops
        if FUSION_GROUP in op.attributes
    ]


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param(f"%a = braid.mul %x, %x : ({WIDE}, {WIDE}) -> {WIDE}", 1, id="squares"),
        pytest.param(
            f"%b = braid.abs %x : ({WIDE}) -> {WIDE}\n"
            f"%a = braid.mul %b, %b : ({WIDE}, {WIDE}) -> {WIDE}",
            1,
            id="a chain",
        ),
        pytest.param(f"%a = braid.exp %x : ({WIDE}) -> {WIDE}", 2, id="a function"),
    ],
)
def test_what_is_reduced_is_made_where_it_is_read(ops: str, expected: int) -> None:
    assert len(set(groups(f"{ops}\n%s = {SUM}"))) == expected


def test_what_others_read_is_stored() -> None:
    """Squares that are divided by their sum are made once."""
    ops = f"""%a = braid.mul %x, %x : ({WIDE}, {WIDE}) -> {WIDE}
    %s = {SUM}
    %y = braid.div %a, %s : ({WIDE}, {NARROW}) -> {WIDE}"""
    squares, total, _ = groups(ops, "%y", WIDE)
    assert squares != total
