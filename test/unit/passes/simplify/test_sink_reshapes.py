"""`sink-reshapes` leaves values as they are, for any shapes."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from xdsl.parser import Parser

from braid.analysis.interpreter import interpret
from braid.dialects.braid.base import shape_of
from braid.passes.simplify.sink_reshapes import SinkReshapesPass
from braid.universe import make_context

EXTENTS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def joined(extents: list[int], cuts: list[bool]) -> list[int]:
    """Return the extents, multiplied where no cut separates neighbours."""
    result = [extents[0]]
    for extent, cut in zip(extents[1:], cuts, strict=False):
        result = [*result, extent] if cut else [*result[:-1], result[-1] * extent]
    return result


def tensor(shape: list[int]) -> str:
    return f"tensor<{'x'.join(map(str, [*shape, 'f32']))}>"


@given(
    EXTENTS, st.lists(st.booleans(), min_size=4, max_size=4), st.lists(st.booleans(), min_size=5)
)
def test_values_stay(rows: list[int], cuts: list[bool], repeated: list[bool]) -> None:
    shape = [*joined(rows, cuts), 3]
    other = [1 if flag else extent for extent, flag in zip(shape, repeated, strict=False)]
    left, product = [math.prod(rows), 2], [math.prod(rows), 3]
    text = f"""
!x = {tensor(left)}
!w = {tensor([2, 3])}
!o = {tensor(other)}
!y = {tensor(product)}
!v = {tensor(shape)}
func.func @main(%x: !x, %w: !w, %o: !o) -> !v {{
  %y = braid.matmul %x, %w : (!x, !w) -> !y
  %v = braid.reshape %y : (!y) -> !v
  %s = braid.add %v, %o : (!v, !o) -> !v
  %m = braid.mul %s, %v : (!v, !v) -> !v
  func.return %m : !v
}}"""
    context = make_context()
    module = Parser(context, text).parse_module()
    inputs = [
        np.random.default_rng(number).integers(-4, 5, extents).astype(np.float32)
        for number, extents in enumerate((left, [2, 3], other))
    ]
    expected = interpret(module, inputs)[0]
    SinkReshapesPass().apply(context, module)
    module.verify()
    np.testing.assert_array_equal(interpret(module, inputs)[0], expected)
    if all(extent == 1 for extent in other) or other == shape:
        (moved,) = (op for op in module.walk() if op.name == "braid.add")
        assert shape_of(moved.results[0]) == tuple(product)


def random_program(draw: st.DrawFn) -> str:
    """Two products, and chains of reshapes, sums and activations of what is there."""
    values = {"%a": [4, 6], "%b": [8, 3]}
    lines = [
        "%a = braid.matmul %x, %v : (tensor<4x2xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>",
        "%b = braid.matmul %y, %w : (tensor<8x2xf32>, tensor<2x3xf32>) -> tensor<8x3xf32>",
    ]
    for number in range(draw(st.integers(1, 8))):
        name, value = f"%{number}", draw(st.sampled_from(sorted(values)))
        alike = sorted(key for key, shape in values.items() if shape == values[value])
        match draw(st.sampled_from(["reshape", "reshape", "sum", "tanh"])):
            case "reshape":
                shape = draw(st.sampled_from([[24], [4, 6], [8, 3], [2, 12], [2, 4, 3], [4, 2, 3]]))
                op, operands = "reshape", [value]
            case "sum":
                shape, op = values[value], "add"
                operands = [value, draw(st.sampled_from(alike))]
            case _:
                shape, op, operands = values[value], "tanh", [value]
        types = ", ".join(tensor(values[each]) for each in operands)
        lines.append(f"{name} = braid.{op} {', '.join(operands)} : ({types}) -> {tensor(shape)}")
        values[name] = shape
    body, types = "\n  ".join(lines), ", ".join(map(tensor, values.values()))
    arguments = "%x: tensor<4x2xf32>, %y: tensor<8x2xf32>, %v: tensor<2x6xf32>, %w: tensor<2x3xf32>"
    returned = f"func.return {', '.join(values)} : {types}"
    return f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n  {returned}\n}}"


@given(st.composite(random_program)())
def test_a_second_run_moves_nothing(text: str) -> None:
    context = make_context()
    module = Parser(context, text).parse_module()
    inputs = [np.ones(shape, np.float32) for shape in ((4, 2), (8, 2), (2, 6), (2, 3))]
    expected = interpret(module, inputs)
    SinkReshapesPass().apply(context, module)
    module.verify()
    for found, wanted in zip(interpret(module, inputs), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    once = str(module)
    SinkReshapesPass().apply(context, module)
    assert str(module) == once
