"""Groups with open dims are decided at likely sizes, and made for all."""

from typing import Any

import pytest
from xdsl.dialects.builtin import f32

from braid.analysis.sizes.open_forms import bound_group, is_bound, open_form
from braid.dialects.braid.attribute_names import OPEN_TYPES
from braid.dialects.braid.base import integers
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.sized_ops import SizedSliceOp
from braid.dialects.braid.sizes import SizesAttr, sized_type
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
    assert opened is not None
    opened.verify()
    assert stored_text(opened) == stored_text(group)
    assert not any(OPEN_TYPES in op.attributes for op in opened.walk() if op is not opened)


def last_two(x: Any) -> Any:
    cut = SizedSliceOp.on(
        x,
        offsets=SizesAttr.of([LENGTH - 2]),
        sizes=SizesAttr.of([2]),
        strides=integers([1]),
    )
    result = elementwise("tanh", cut.output)
    return [cut, result], [result.output]


def test_a_group_that_is_another_one_where_sizes_are_open_has_no_family() -> None:
    bound = bound_group(make_group([sized_type(f32, [LENGTH])], last_two), LIKELY)
    assert is_bound(bound) and open_form(bound) is None
    matches = GroupMatches(cpu_families(HOST))
    assert matches.of(bound) == () and not matches.any_takes(bound)
    for op in bound.body.block.ops:
        op.attributes.pop(OPEN_TYPES, None)
    assert matches.any_takes(bound), "the same group of fixed sizes is taken"
