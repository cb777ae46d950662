"""What is known of families without asking them in full is what they would say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, TensorType, bf16, f16, f32, f64

from braid.analysis.storage.tensor_storage import stored_alike
from braid.dialects.braid.layout import Layout
from braid.lowering.cpu.families import cpu_families
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.costs.device_costs import DeviceCosts, reorder_group
from braid.targets.kernels.group_matches import GroupMatches, match_group
from test.unit.lowering.kernels.emitted_code import CASES, MACHINES

GROUPS = [
    pytest.param(label, case, id=f"{case.family} {case.label} {label}")
    for label in MACHINES
    for case in CASES
    if label in case.machines
]
COSTS = {
    label: DeviceCosts.of_families(cpu_families(machine), machine)
    for label, machine in MACHINES.items()
}
NUMBERS = (f64, f32, f16, bf16, IntegerType(64), IntegerType(8), IntegerType(1))
EXTENTS = st.sampled_from((1, 2, 3, 7, 8, 16, 32, 48, 56))
LAYOUTS = {
    2: ("ab", "ba"),
    3: ("abc", "acb", "bca"),
    4: ("abcd", "acdb", "aBcd16b", "aBcd8b", "cdba", "ABcd4a16b"),
    5: ("abcde", "acdeb"),
}


@pytest.mark.parametrize(("machine", "case"), GROUPS)
def test_families_without_an_anchor_in_a_group_would_not_take_it(machine, case) -> None:
    families = cpu_families(MACHINES[machine])
    group = case.group(VectorUnit.of(MACHINES[machine]).lanes)
    takers = [family.name for family in families if family.match(group) is not None]
    assert case.family in takers
    assert [match.family.name for match in GroupMatches(families).of(group)] == takers


@pytest.mark.parametrize(("machine", "case"), GROUPS)
def test_a_choice_is_offered_if_it_is_listed(machine, case) -> None:
    families = cpu_families(MACHINES[machine])
    group = case.group(VectorUnit.of(MACHINES[machine]).lanes)
    listed = {
        family: match.layouts
        for family in families
        if (match := match_group(family, group)) is not None
    }
    every = dict.fromkeys(choice for choices in listed.values() for choice in choices)
    for family, choices in listed.items():
        fresh = match_group(family, group)
        assert fresh is not None
        assert [choice for choice in every if fresh.supports_layout(choice)] == [
            choice for choice in every if choice in choices
        ]


@given(st.sampled_from(sorted(MACHINES)), st.sampled_from(NUMBERS), st.data())
def test_a_reorder_costs_by_its_shape_what_its_group_does(machine, number, data) -> None:
    rank = data.draw(st.sampled_from(sorted(LAYOUTS)))
    shape = data.draw(st.lists(EXTENTS, min_size=rank, max_size=rank))
    names = data.draw(st.permutations(LAYOUTS[rank]))
    source, target = (Layout.parse(name) for name in names[:2])
    costs, tensor = COSTS[machine], TensorType(number, shape)
    by_group = min(
        (cost for _, cost in costs.choices(reorder_group(tensor, source, target))),
        key=lambda cost: cost.seconds,
    )
    assert costs.reorder(tensor, source, target) == by_group
    is_plain = source.is_permutation and target.is_permutation and number != IntegerType(1)
    if is_plain and not stored_alike(shape, source, target):
        assert costs.kernels.reorder(tensor, source, target) is not None
