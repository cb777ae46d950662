"""Kernels of groups with open dims: compiled once, and checked at any sizes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, SSAValue

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.sizes.evaluation import evaluate as value_of
from braid.support.sizes.expression import Extent
from braid.targets.kernels.kernel_family import Kernel
from test.machines import HOST
from test.run.groups import evaluate
from test.run.kernels.conftest import Build, at_end_of_page, make_group, random_array
from test.schedules import emitted

Make = Callable[[FusedOp, ExtentsOf], Kernel]
Shapes = Sequence[Sequence[Extent]]

SIZES = (0, 1, 2, 3, 7, 16, 61, 97, 131)
"""Sizes: none, one, a vector's length, and primes next to it."""


def unit() -> VectorUnit:
    return VectorUnit.of(HOST)


def open_type(extents: Sequence[Extent], element_type: Attribute = f32) -> TensorType[Any]:
    shape = [extent if isinstance(extent, int) else DYNAMIC for extent in extents]
    return TensorType(element_type, shape)


def open_group(
    shapes: Shapes,
    build: Build,
    results: Shapes,
    types: Sequence[Attribute] = (),
    inside: Shapes = (),
    choice: LayoutChoice | None = None,
) -> tuple[FusedOp, ExtentsOf]:
    """Return a group, and the extents of its values; those inside are like others, or `inside`."""
    kinds = types or [f32] * len(shapes)
    group = make_group(list(map(open_type, shapes, kinds)), build, choice, is_verified=False)
    known = dict(zip(group.body.block.args, map(tuple, shapes), strict=True))
    known.update(zip(group.terminator.arguments, map(tuple, results), strict=False))
    alike = {shape_of(value): extents for value, extents in reversed(known.items())}
    alike.update({open_type(shape).get_shape(): tuple(shape) for shape in inside})

    def extents_of(value: SSAValue) -> tuple[Extent, ...]:
        return known.get(value) or alike.get(shape_of(value), shape_of(value))

    return group, extents_of


def maker(family: Any) -> Make:
    """Return a function that makes the kernel of a group by its family, which asks for the
    extents."""

    def make(group: FusedOp, extents_of: ExtentsOf) -> Kernel:
        assert family.match(group) is None, "types do not say how long open dims are"
        candidate = family.match(group, extents_of)
        return emitted(candidate, next(candidate.space(0)))

    return make


class OpenKernel:
    """The kernel that `make` emits of a group, for all values of the symbols in `shapes`."""

    def __init__(
        self,
        shapes: Shapes,
        build: Build,
        make: Make,
        *,
        results: Shapes | None = None,
        types: Sequence[Attribute] | None = None,
        inside: Shapes = (),
        choice: LayoutChoice | None = None,
    ) -> None:
        self.shapes, self.build = shapes, build
        self.types = types or [f32] * len(shapes)
        fixed = (shapes, build, results or [shapes[0]], self.types, inside, choice)
        group, extents_of = open_group(*fixed)
        self.choice = choice or row_major_choice(group)
        kernel = make(group, extents_of)
        self.in_place = kernel.in_place
        self.call = CallableKernel(kernel)

    def check(
        self, tolerance: float = 2e-6, arrays: Sequence[Any] | None = None, **symbols: int
    ) -> None:
        """Run the kernel at these sizes, in three parts and in place, before guard pages."""
        shapes = [[value_of(extent, symbols) for extent in shape] for shape in self.shapes]
        types = [TensorType(kind, s) for kind, s in zip(self.types, shapes, strict=True)]
        arrays = arrays or [random_array(type, seed) for seed, type in enumerate(types)]
        group = make_group(types, self.build, is_verified=False)
        expected = evaluate(group, arrays)
        for pair in (None, *self.in_place):
            operands = list(map(_stored, arrays, self.choice.operands))
            sevens = [np.full_like(array, 7) for array in expected]
            outputs = list(map(_stored, sevens, self.choice.results))
            if pair is not None:
                outputs[pair[1]] = operands[pair[0]]
            self._run([*operands, *outputs], symbols)
            for output, array, layout in zip(outputs, expected, self.choice.results, strict=True):
                reference = to_storage(array, layout)
                np.testing.assert_allclose(output, reference, rtol=tolerance, atol=tolerance)

    def _run(self, buffers: Sequence[Any], symbols: dict[str, int]) -> None:
        """Run the last iterations first: they are independent."""
        end = value_of(self.call.grid, symbols)
        for begin in (2 * end // 3, end // 3, 0):
            self.call(*buffers, begin=begin, end=end, symbols=symbols)
            end = begin


def _stored(array: Any, layout: Layout) -> Any:
    return at_end_of_page(to_storage(array, layout))
