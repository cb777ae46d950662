"""Named ops of linalg compute as upstream defines, whoever makes their bodies."""

from collections.abc import Sequence

import pytest
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from braid.dialects.printing import module_text
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.passes.infrastructure.context import make_context
from braid.support.upstream_process import Request, upstream_text

GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"
WINDOW = "{strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<[1, 2]> : tensor<2xi64>}"
SHAPES: dict[str, Sequence[str]] = {
    "matmul": ("4x5", "5x6", "4x6"),
    "conv_2d_nchw_fchw": ("1x3x9x9", "4x3x3x3", "1x4x4x5"),
    "conv_2d_ngchw_fgchw": ("1x2x3x9x9", "4x2x3x3x3", "1x2x4x4x5"),
    "conv_2d_ngchw_gfchw": ("1x2x3x9x9", "2x4x3x3x3", "1x2x4x4x5"),
    "conv_2d_nhwc_fhwc": ("1x9x9x3", "4x3x3x3", "1x4x5x4"),
    "conv_2d_nhwc_hwcf": ("1x9x9x3", "3x3x3x4", "1x4x5x4"),
    "conv_2d_nhwgc_gfhwc": ("1x9x9x2x3", "2x4x3x3x3", "1x4x5x2x4"),
    "pooling_nchw_max": ("1x3x9x9", "3x3", "1x3x4x5"),
    **dict.fromkeys(("add", "sub", "mul", "max", "min"), ("7",) * 3),
    **dict.fromkeys(("exp", "log", "sqrt", "copy"), ("7",) * 2),
}
"""The shapes of the operands of each named op that xDSL has."""


def _text(name: str, types: Sequence[str]) -> str:
    tensors = [f"tensor<{shape}x{t}>" for shape, t in zip(SHAPES[name], types, strict=False)]
    *ins, out = tensors
    arguments = ", ".join(f"%{number}: {type}" for number, type in enumerate(tensors))
    read = ", ".join(f"%{number}" for number in range(len(ins)))
    window = WINDOW if name.startswith(("conv", "pooling")) else ""
    return (
        f"func.func @main({arguments}) -> {out} {{\n  %y = linalg.{name} {window}"
        f" ins({read} : {', '.join(ins)}) outs(%{len(ins)} : {out}) -> {out}\n"
        f"  return %y : {out}\n}}"
    )


def _computed(text: str) -> object:
    """Return the maps of upstream's nest for the only op, and the values that its body yields."""
    text = upstream_text(Request(text, GENERALIZE, unregistered=False, locations=False))
    (nest,) = (op for op in parse_mlir(make_context(), text, "").module.walk() if _is_nest(op))
    assert isinstance(nest, GenericOp)
    last = nest.body.block.last_op
    assert last is not None
    return str(nest.indexing_maps), str(nest.iterator_types), _expression(last.operands[0])


def _is_nest(op: Operation) -> bool:
    return isinstance(op, GenericOp)


def _expression(value: SSAValue) -> object:
    """Return a scalar as the ops that compute it; all with two operands here but `sub` commute."""
    if isinstance(value, BlockArgument):
        return value.index
    op = value.owner
    assert isinstance(op, Operation)
    read = [_expression(operand) for operand in op.operands]
    return op.name, (tuple(read) if "sub" in op.name else frozenset(read))


@pytest.mark.parametrize("types", [("f32",) * 3, ("i32",) * 3, ("i1",) * 3, ("i8", "i8", "i32")])
@pytest.mark.parametrize("name", SHAPES)
def test_same_as_upstream(name: str, types: Sequence[str]) -> None:
    text = _text(name, types[-len(SHAPES[name]) :])
    try:
        module = parse_mlir(make_context(), text, "").module
        module.verify()
    except (MLIRSyntaxError, VerifyException):
        return  # left to upstream
    assert _computed(module_text(module, generic=True)) == _computed(text)
