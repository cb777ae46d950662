"""Groups with open dims are decided at likely sizes, and made for all."""

from typing import Any

import pytest
from xdsl.dialects.builtin import f32

from braid.analysis.sizes.open_forms import bound_group, is_bound, open_form
from braid.dialects.braid.attribute_names import OPEN_TYPES
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.sized_ops import pad_of, slice_of
from braid.dialects.braid.sizes import sized_type
from braid.lowering.cpu.families import cpu_families
from braid.support.sizes.expression import symbol
from braid.targets.kernels.group_matches import GroupMatches
from braid.targets.kernels.keys import stored_text
from test.machines import HOST
from test.run.kernels.chosen_kernels import ChosenKernel
from test.run.kernels.conftest import make_group

BATCH, LENGTH = symbol("batch"), symbol("length")
LIKELY = {"batch": 1, "length": 128}


def one(make: Any) -> Any:
    """Build the op that `make` makes of the operands."""
    return lambda *values: ([op := make(*values)], list(op.results))


def gated(x: Any, y: Any) -> Any:
    gate = elementwise("tanh", x)
    result = elementwise("mul", gate.output, y)
    return [gate, result], [result.output]


CASES: dict[str, Any] = {
    "elementwise": ([(BATCH, LENGTH, 24), (1, 1, 24)], gated),
    "normalization": ([(BATCH, 3, LENGTH, LENGTH)], one(lambda x: SoftmaxOp.get(x, 3))),
    "movement": ([(BATCH, LENGTH, 3, 8)], one(lambda x: TransposeOp.get(x, (0, 2, 1, 3)))),
    "concat": ([(BATCH, LENGTH, 64), (BATCH, 5, 64)], one(lambda x, y: ConcatOp.get([x, y], 1))),
    "reduction": ([(BATCH, LENGTH, 24)], one(lambda x: ReduceOp.get(x, "add", (1,)))),
}


@pytest.mark.parametrize("family", CASES)
def test_the_kernel_chosen_at_likely_sizes_is_right_at_others(family: str) -> None:
    shapes, build = CASES[family]
    kernel = ChosenKernel(shapes, build, LIKELY)
    assert kernel.family == family
    for batch, length in ((1, 1), (1, 128), (3, 37)):
        kernel.check(2e-5, batch=batch, length=length)


def test_a_bound_group_says_what_it_was() -> None:
    shapes = [(BATCH, LENGTH, 24), (1, 1, 24)]
    group = make_group([sized_type(f32, shape) for shape in shapes], gated)
    bound = bound_group(group, LIKELY)
    assert is_bound(bound) and not is_bound(group)
    assert [value.type.get_shape() for value in bound.inputs] == [(1, 128, 24), (1, 1, 24)]  # pyright: ignore
    opened = open_form(bound)
    opened.verify()
    assert stored_text(opened) == stored_text(group)
    assert not any(OPEN_TYPES in op.attributes for op in opened.walk() if op is not opened)


def padded(x: Any) -> Any:
    wide = pad_of(x, [0], [256 - LENGTH], 0.0)
    result = elementwise("tanh", wide.output)
    return [wide, result], [result.output]


def test_a_group_that_no_family_takes_where_sizes_are_open() -> None:
    group = make_group([sized_type(f32, [LENGTH])], padded)
    bound = bound_group(group, LIKELY)
    assert is_bound(bound) and stored_text(open_form(bound)) == stored_text(group)
    matches = GroupMatches(cpu_families(HOST))
    assert matches.of(bound) == () and not matches.any_takes(bound)
    for op in bound.body.block.ops:
        op.attributes.pop(OPEN_TYPES, None)
    assert matches.any_takes(bound), "the same group of fixed sizes is taken"


def parts_of_lines(x: Any) -> Any:
    gates = [slice_of(x, [0, at * LENGTH], [BATCH, LENGTH]) for at in (0, 2)]
    back = slice_of(x, [0, 2 * LENGTH - 1], [BATCH, LENGTH])
    last = slice_of(x, [0, 4 * LENGTH - 1], [BATCH, 1])
    first = elementwise("mul", gates[0].output, gates[1].output)
    second = elementwise("add", first.output, back.output)
    result = elementwise("sub", second.output, last.output)
    return [*gates, back, last, first, second, result], [result.output]


def test_slices_at_sizes_are_read_where_they_lie() -> None:
    kernel = ChosenKernel([(BATCH, 4 * LENGTH)], parts_of_lines, LIKELY, family="elementwise")
    for batch, length in ((1, 1), (0, 5), (1, 128), (3, 37), (2, 16)):
        kernel.check(2e-6, batch=batch, length=length)


def whole_pages(x: Any) -> Any:
    page = slice_of(x, [BATCH - 1, 0, 0], [1, LENGTH, 24], [1, 1, 1])
    result = elementwise("exp", page.output)
    return [page, result], [result.output]


def test_a_slice_at_a_size_along_the_outermost_dim() -> None:
    kernel = ChosenKernel([(BATCH, LENGTH, 24)], whole_pages, LIKELY, family="elementwise")
    for batch, length in ((1, 1), (7, 5), (1, 128), (3, 37)):
        kernel.check(2e-6, batch=batch, length=length)
