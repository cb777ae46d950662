"""Results that are larger than what the group's one op that is not elementwise makes.

A family that goes through the points of that op has to leave such a group to others.
"""

import pytest
from xdsl.dialects.builtin import f32

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import PadOp, SliceOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.scan import ScanOp
from braid.lowering.cpu.families import cpu_families
from braid.targets.kernels.kernel_family import GENERIC
from test.machines import HOST
from test.run.kernels.conftest import KernelCheck, make_group, random_array
from test.run.kernels.test_tiled import conv, tensors


def pooled(x):
    ones, zeros = [1, 1], [0, 0]
    return PoolOp.get(x, "max", [2, 2], strides=ones, pad_low=zeros, pad_high=zeros, dilations=ones)


OPS = {
    "reduce-outer": (lambda x: ReduceOp.get(x, "add", [0]), [(24, 70)], (24, 70)),
    "reduce-inner": (lambda x: ReduceOp.get(x, "maximum", [1]), [(24, 70)], (24, 70)),
    "reduce-middle": (lambda x: ReduceOp.get(x, "add", [1]), [(3, 5, 40)], (3, 5, 40)),
    "reduce-all": (lambda x: ReduceOp.get(x, "add", [0, 1]), [(24, 70)], (3, 70)),
    "arg-reduce": (lambda x: ArgReduceOp.get(x, "max", 1), [(24, 70)], (24, 70)),
    "softmax": (lambda x: SoftmaxOp.get(x, 1), [(1, 70)], (24, 70)),
    "scan": (lambda x: ScanOp.get(x, "add", 1), [(1, 70)], (24, 70)),
    "matmul": (MatmulOp.on, [(1, 16), (16, 64)], (24, 64)),
    "conv": (conv, [(1, 16, 6, 6), (16, 16, 3, 3)], (3, 16, 4, 4)),
    "pool": (pooled, [(1, 16, 6, 6)], (3, 16, 5, 5)),
    "slice": (lambda x: SliceOp.get(x, [3, 0], [1, 70]), [(24, 70)], (24, 70)),
    "pad": (lambda x: PadOp.get(x, [0, 1], [0, 1], 0.5), [(1, 68)], (24, 70)),
}
"""The op, the shapes of its operands, and that of the addend of its result."""


@pytest.mark.parametrize("is_squared", [False, True])
@pytest.mark.parametrize("name", OPS)
def test_a_family_takes_a_larger_result_if_it_makes_all_of_it(
    name: str, is_squared: bool, check: KernelCheck
) -> None:
    """Whatever families match the group."""
    make, shapes, whole = OPS[name]

    def build(x, *others):
        first = [elementwise("mul", x, x)] if is_squared else []
        made = make(first[0].results[0] if first else x, *others[: len(shapes) - 1])
        numbers = made.results[0]
        cast = (
            []
            if numbers.type.element_type == f32
            else [elementwise("cast", numbers, element_type=f32)]
        )
        sum_ = elementwise("add", others[-1], cast[0].results[0] if cast else numbers)
        return [*first, made, *cast, sum_], [sum_.results[0]]

    # Generic kernels make all of their result in each of the two parts, in place too.
    families = [family for family in cpu_families(HOST) if family.name != GENERIC]
    larger = tensors([*shapes, whole])
    for family in families:
        found = family.match(make_group(larger, build))
        if found is not None and found.layouts:
            arrays = [random_array(type, seed) for seed, type in enumerate(larger)]
            check(family, larger, build, arrays=arrays)
