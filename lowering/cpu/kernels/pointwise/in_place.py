"""Which operand of a kernel a result may overwrite: one that is read only where it is written."""

from collections.abc import Collection, Sequence

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.cpu.kernels.pointwise.points import Pointwise
from braid.targets.kernels.kernel_family import InPlace

Strides = Sequence[int]


def in_place_leaves(
    points: Pointwise,
    leaves: Sequence[Strides],
    results: Sequence[Strides],
    read_elsewhere: Collection[SSAValue] = (),
) -> tuple[InPlace, ...]:
    """Pairs of a leaf and a result of a pointwise kernel that lie alike, element by element.

    `leaves` and `results` are the strides of each along all loops of the kernel; a leaf that is
    repeated along one of them differs. What is in `read_elsewhere` is read at other points too.
    """
    return tuple(
        (leaf.index, number)
        for leaf, leaf_strides in zip(points.leaves, leaves, strict=True)
        if leaf not in read_elsewhere
        for number, (result, strides) in enumerate(zip(points.results, results, strict=True))
        if tuple(leaf_strides) == tuple(strides) and _bytes(leaf) == _bytes(result)
    )


def _bytes(value: SSAValue) -> int:
    return bytes_of(element_type_of(value))
