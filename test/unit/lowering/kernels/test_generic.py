"""The generic lowering is one of the families: others may lose against it, and why it may not."""

from dataclasses import dataclass, field

import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.cpu.fallback.emit_kernel import emit_kernel
from braid.lowering.cpu.families import cpu_families
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseCandidate, ElementwiseFamily
from braid.lowering.cpu.kernels.generic import GenericFamily
from braid.targets.costs import device_costs
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts, reorder_group
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.kernels.flexible_layouts import row_major_choice
from braid.targets.machines.load import load_target
from braid.tuning.layout_candidates import group_candidates, in_layouts
from test.machines import HOST

ROWS, LAST = Layout.row_major(4), Layout.parse("acdb")
GENERIC = GenericFamily(HOST)


@dataclass(frozen=True)
class LastFamily(ElementwiseFamily):
    """Channels last alone, in so many seconds."""

    name: str = "last"
    takes: float = 1.0
    emitted: list[str] = field(default_factory=list[str])

    def match(self, group):
        found = super().match(group)
        assert found is not None
        return LastCandidate(group, self.unit, found.points, found.extents_of, self)


@dataclass(frozen=True, eq=False)
class LastCandidate(ElementwiseCandidate):
    family: LastFamily

    def choices(self):
        return [LayoutChoice((LAST,), (LAST,))]

    def seconds(self, choice):
        return self.family.takes

    def emit(self, symbol, schedule):
        self.family.emitted.append(symbol)
        return super().emit(symbol, schedule)


def group_of(*shapes, make):
    types = [TensorType(f32, shape) for shape in shapes]
    body = Block(arg_types=types)
    ops = make(*body.args)
    body.add_ops([*ops, YieldOp(ops[-1].results[0])])
    outside = Block(arg_types=types)
    group = FusedOp(outside.args, [ops[-1].results[0].type], body)
    outside.add_op(group)
    return group


def negation():
    return group_of((1, 8, 6, 6), make=lambda x: [elementwise("neg", x)])


def attention(length, width):
    """Two products in a row, whose result in between is length x length."""

    def make(q, k, v):
        scores = MatmulOp.on(q, k)
        return [scores, MatmulOp.on(scores.output, v)]

    return group_of((length, width), (width, length), (length, width), make=make)


@pytest.mark.parametrize(("seconds", "winner"), [(1.0, "generic"), (1e-9, "last")])
def test_a_family_wins_by_its_seconds_alone(seconds, winner, monkeypatch) -> None:
    family = LastFamily(HOST, takes=seconds)
    monkeypatch.setattr(device_costs, "kernel_families", lambda *_: (family, GENERIC))
    group = negation()
    choices = LayoutCosts(ModuleOp([]), CostSource(load_target("host"), {}), "seconds").choices(
        group
    )
    assert {c.layouts.results[0] for c in choices} >= {ROWS, LAST}
    cheapest = min(choices, key=lambda choice: choice.cost)
    assert cheapest.cost < 1e-3 and cheapest.family == winner
    costs = DeviceCosts.of_families((family, GENERIC), records={})
    in_last = costs.kernels.match(group, LayoutChoice((LAST,), (LAST,)))
    assert in_last is not None and in_last.family.name == winner


def test_lowering_asks_the_same_question() -> None:
    slow, fast = LastFamily(HOST, takes=1.0), LastFamily(HOST, takes=1e-9)
    group = in_layouts(negation(), LayoutChoice((LAST,), (LAST,)))
    emit_kernel("k", group, (slow, GENERIC))
    emit_kernel("k", group, (fast, GENERIC))
    assert (slow.emitted, fast.emitted) == ([], ["k"])


def test_what_would_need_much_memory_inside_is_not_taken() -> None:
    assert GENERIC.match(attention(8, 16)) is not None
    assert GENERIC.match(attention(512, 16)) is None


def test_products_are_predicted_to_be_slower_than_in_a_family() -> None:
    families = cpu_families(HOST)
    group = group_of((64, 64), (64, 64), make=lambda a, b: [MatmulOp.on(a, b)])
    choice = row_major_choice(group)
    matches = DeviceCosts.of_families(families, records={}).kernels.matches.of(group)
    *others, generic = matches
    assert (
        generic.family.name == "generic"
        and others
        and all(
            generic.candidate.seconds(choice) > 4 * match.candidate.seconds(match.layouts[0])
            for match in others
        )
    )
    # So it is not measured, unless nobody else makes the kernel.
    assert {c.family for c in group_candidates(group, families)} == {
        match.family for match in others
    }
    assert {c.family for c in group_candidates(group, (ConvDirectFamily(HOST), GENERIC))} == {
        GENERIC
    }


def test_a_reorder_is_one_choice() -> None:
    group = reorder_group(TensorType(f32, (1, 8, 6, 6)), ROWS, LAST)
    found = GENERIC.match(group)
    assert found is not None and found.layouts == [LayoutChoice((ROWS,), (LAST,))]
