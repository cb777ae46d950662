"""Kernels of groups whose types have sizes, chosen at likely ones as a backend chooses them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute

from braid.analysis.sizes.open_forms import bound_group
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import to_storage
from braid.dialects.braid.sized_ops import has_sizes
from braid.dialects.braid.sizes import sized_type
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.families import cpu_families
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.support.sizes.evaluation import evaluate as value_of
from braid.support.sizes.expression import Extent
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.costs.measurements import Measurements
from test.machines import HOST
from test.run.groups import evaluate
from test.run.kernels.conftest import Build, at_end_of_page, make_group, random_array


class ChosenKernel:
    """The kernel of a group with open dims that `family` makes in `layouts`, by default the
    best."""

    def __init__(
        self,
        shapes: Sequence[Sequence[Extent]],
        build: Build,
        likely: Mapping[str, int],
        *,
        family: str = "",
        types: Sequence[Attribute] | None = None,
        known: Sequence[int] = (),
        layouts: Sequence[str] = (),
    ) -> None:
        """`known` are operands that may be in other layouts than row-major, -1 the results."""
        self.shapes, self.build = shapes, build
        self.types = types or [f32] * len(shapes)
        families = [each for each in cpu_families(HOST) if family in ("", each.name)]
        selection = KernelChoice(families, Measurements({}), likely=likely)
        group = self._open_group(None)
        self.choice = self._layouts(selection, group, likely, known, layouts)
        chosen = selection.choose(self._open_group(self.choice))
        assert chosen is not None, "no family takes the group at all sizes"
        match, self.schedule = chosen
        self.family = match.family.name
        self.kernel = match.emit("kernel", self.schedule)
        self.call = CallableKernel(self.kernel)

    def _open_group(self, choice: LayoutChoice | None) -> FusedOp:
        types = [sized_type(kind, own) for kind, own in zip(self.types, self.shapes, strict=True)]
        return make_group(types, self.build, choice)

    def _layouts(
        self,
        selection: KernelChoice,
        group: FusedOp,
        likely: Mapping[str, int],
        known: Sequence[int],
        tags: Sequence[str],
    ) -> LayoutChoice:
        """Return the given layouts, or the best for which tensors need not be changed."""
        if tags:
            found = [Layout.parse(tag) for tag in tags]
            count = len(group.inputs)
            return LayoutChoice(tuple(found[:count]), tuple(found[count:]))
        plain = row_major_choice(group)
        found = []
        for match in selection.matches.of(bound_group(group, likely)):
            for choice in match.candidate.layouts:
                others = list(zip(choice.operands, plain.operands, strict=True))
                is_plain = (-1 in known or choice.results == plain.results) and all(
                    own == row or index in known for index, (own, row) in enumerate(others)
                )
                if (
                    is_plain
                    and match.at_all_sizes
                    and match.at_all_sizes.supports_open_layout(choice)
                ):
                    found.append((match.candidate.seconds(choice), choice))
        assert found, "no family takes the group at all sizes"
        return min(found, key=lambda each: each[0])[1]

    def arrays(self, **symbols: int) -> list[Any]:
        """Return operands at these sizes."""
        shapes = [[value_of(extent, symbols) for extent in shape] for shape in self.shapes]
        types = [TensorType(kind, s) for kind, s in zip(self.types, shapes, strict=True)]
        return [random_array(type, seed) for seed, type in enumerate(types)]

    def check(
        self, tolerance: float = 2e-6, arrays: Sequence[Any] | None = None, **symbols: int
    ) -> None:
        """Run the kernel at these sizes, in three parts and in place, before guard pages."""
        shapes = [[value_of(extent, symbols) for extent in shape] for shape in self.shapes]
        types = [TensorType(kind, s) for kind, s in zip(self.types, shapes, strict=True)]
        arrays = arrays or self.arrays(**symbols)
        group = self._open_group(None)
        if has_sizes(group):
            expected = evaluate(bound_group(group, symbols), arrays)
        else:
            expected = evaluate(make_group(types, self.build, is_verified=False), arrays)
        for pair in (None, *self.kernel.in_place):
            operands = list(map(_stored, arrays, self.choice.operands))
            sevens = [np.full_like(array, 7) for array in expected]
            outputs = list(map(_stored, sevens, self.choice.results))
            if pair is not None:
                outputs[pair[1]] = operands[pair[0]]
            end = value_of(self.kernel.grid, symbols)
            for begin in (2 * end // 3, end // 3, 0):
                self.call(*operands, *outputs, begin=begin, end=end, symbols=symbols)
                end = begin
            for output, array, layout in zip(outputs, expected, self.choice.results, strict=True):
                reference = to_storage(array, layout)
                np.testing.assert_allclose(output, reference, rtol=tolerance, atol=tolerance)


def _stored(array: Any, layout: Layout) -> Any:
    return at_end_of_page(to_storage(array, layout))
