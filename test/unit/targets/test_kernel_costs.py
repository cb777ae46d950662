"""Which family makes a kernel, from predictions and from measurements."""

from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    f64,
    i64,
)
from xdsl.ir import Block
from xdsl.rewriter import Rewriter

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import set_strides
from braid.dialects.braid.attribute_names import LAYOUT_SECONDS, NAME, SECONDS
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.cpu.families import cpu_families
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts, reorder_group
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.kernels.keys import record_key
from braid.targets.machines.load import load_target
from test.machines import HOST

ROWS, COLUMNS = Layout.parse("ab"), Layout.parse("ba")
PLAIN, TURNED = LayoutChoice((ROWS,), (ROWS,)), LayoutChoice((COLUMNS,), (COLUMNS,))


@dataclass
class Family:
    """Predicts `times` by the tag of the result; counts how often it is asked to match."""

    name: str
    times: dict[str, float]
    version: int = 1
    asked: int = 0

    def match(self, group):
        self.asked += 1
        return Found(self.times) if self.times else None


@dataclass(frozen=True)
class Found:
    """What a `Family` finds in any group."""

    times: dict[str, float]

    @property
    def layouts(self):
        return [LayoutChoice((Layout.parse(tag),), (Layout.parse(tag),)) for tag in self.times]

    def supports_strides(self, choice):
        return False

    def seconds(self, choice):
        return self.times[choice.results[0].tag]

    def space(self, level):
        yield from [{}] if level == 0 else []

    def emit(self, symbol, schedule):
        raise AssertionError("nothing is emitted here")

    def overlap(self):
        return None


def own(name):
    """Braid's own family of this name."""
    return next(family for family in cpu_families(HOST) if family.name == name)


def maker(costs, group, choice):
    match = costs.kernels.match(group, choice)
    return None if match is None else match.family


def negation(layout=ROWS, name=None, shape=(2, 3)):
    type = with_layout(TensorType(f32, shape), layout)
    body = Block(arg_types=[type])
    op = elementwise("neg", body.args[0])
    if name:
        op.attributes[NAME] = StringAttr(name)
    result = Rewriter.replace_value_with_new_type(op.results[0], type)
    body.add_ops([op, YieldOp(result)])
    outside = Block(arg_types=[type])
    group = FusedOp(outside.args, [type], body)
    outside.add_op(group)
    return group


def kernel_costs(families, records) -> DeviceCosts:
    return DeviceCosts.of_families(families, records=records)


def layout_costs(resource: str, records) -> LayoutCosts:
    return LayoutCosts(ModuleOp([]), CostSource(load_target("host"), records), resource)


LAUNCH = 0.5e-6
FIRST = Family("first", {"ab": 2.0, "ba": 1.0})
SECOND = Family("second", {"ab": 1.0})
FAMILIES = (FIRST, SECOND, Family("never", {}))


def test_the_cheapest_family_wins_in_each_choice() -> None:
    costs = kernel_costs(FAMILIES, {})
    options = costs.kernels.options(negation())
    assert [(o.family.name, o.layouts, o.seconds) for o in options] == [
        ("second", PLAIN, 1.0),
        ("first", TURNED, 1.0),
    ]
    for option in options:
        assert maker(costs, negation(), option.layouts) is option.family
    assert maker(costs, negation(), LayoutChoice((ROWS,), (COLUMNS,))) is None


def test_a_group_is_matched_again_only_after_it_was_changed() -> None:
    family = Family("counted", {"ab": 1.0})
    costs, group = kernel_costs([family], {}), negation()

    def asked_again() -> bool:
        before = family.asked
        costs.kernels.options(group)
        costs.kernels.match(group, PLAIN)
        assert family.asked - before <= 1
        return family.asked > before

    assert asked_again() and not asked_again()
    set_strides(group, [(4, 1), None])
    assert asked_again() and not asked_again()
    op = group.body.block.first_op
    assert op is not None
    op.attributes[NAME] = StringAttr("layer")
    assert asked_again() and not asked_again()
    twice = elementwise("neg", op.results[0])
    group.body.block.insert_op_after(twice, op)
    assert asked_again() and not asked_again()
    group.terminator.operands[0] = twice.results[0]
    assert asked_again() and not asked_again()
    turned = with_layout(twice.results[0].type, COLUMNS)
    Rewriter.replace_value_with_new_type(twice.results[0], turned)
    assert asked_again() and not asked_again()
    costs.kernels.options(negation())
    assert asked_again() is False


def test_a_measurement_is_believed_before_a_prediction() -> None:
    group = negation()
    records = {record_key(group, PLAIN, SECOND): 3.0}
    costs = kernel_costs(FAMILIES, records)
    assert maker(costs, group, PLAIN) is FIRST
    assert [option.source for option in costs.kernels.options(group)] == [Source.FAMILY] * 2
    records = {record_key(group, PLAIN, FIRST): 0.5}
    option = kernel_costs(FAMILIES, records).kernels.options(group)[0]
    assert (option.family, option.seconds, option.source) == (FIRST, 0.5, Source.MEASURED)


def test_keys_forget_names_and_types_layouts_but_nothing_else() -> None:
    key = record_key(negation(), PLAIN, FIRST)
    assert record_key(negation(COLUMNS, "layer"), PLAIN, FIRST) == key
    others = {
        record_key(negation(), TURNED, FIRST),
        record_key(negation(), PLAIN, SECOND),
        record_key(negation(shape=(3, 2)), PLAIN, FIRST),
    }
    assert key not in others and len(others) == 3


def test_reorders_are_costed_by_records() -> None:
    tensor = TensorType(f32, [64, 64])
    group = reorder_group(tensor, ROWS, COLUMNS)
    predicted = layout_costs("seconds", {})
    assert 0 < predicted.reorder(tensor, ROWS, COLUMNS) < 1e-3
    table = {record_key(group, LayoutChoice((ROWS,), (COLUMNS,)), own("movement")): 1e-9}
    measured = layout_costs("seconds", table)
    assert measured.reorder(tensor, ROWS, COLUMNS) == pytest.approx(1e-9 + LAUNCH)
    assert measured.reorder(tensor, COLUMNS, ROWS) > 1e-6
    by_bytes = layout_costs("bytes", table)
    assert by_bytes.reorder(tensor, ROWS, COLUMNS) == 2 * 4 * 64 * 64


def test_the_generic_lowering_is_measured_too() -> None:
    type = TensorType(f32, [2, 3, 4, 5])
    body = Block(arg_types=[type])
    op = ReduceOp.get(body.args[0], "mul", (1,))
    body.add_ops([op, YieldOp(op.output)])
    outside = Block(arg_types=[type])
    group = FusedOp(outside.args, [op.output.type], body)
    outside.add_op(group)
    plain, turned = layout_costs("seconds", {}).choices(group)
    assert plain.cost == turned.cost
    records = {record_key(group, turned.layouts, own("generic")): 1e-9}
    costs = layout_costs("seconds", records).choices(group)
    assert [choice.cost for choice in costs] == [plain.cost, LAUNCH + 1e-9]


def test_a_profile_counts_where_layouts_are_as_profiled() -> None:
    costs = layout_costs("seconds", {})
    shape, last = (2, 3, 4, 5), Layout.parse("acdb")
    plain, turned = negation(shape=shape, layout=Layout.row_major(4)), negation(last, shape=shape)
    for group in (plain, turned):
        group.attributes[SECONDS] = FloatAttr(0.125, f64)
        cost = CostSource(load_target("host")).cost(group)
        assert (cost.seconds, cost.source) == (0.125, Source.MEASURED)
    for group, layout in ((plain, Layout.row_major(4)), (turned, last)):
        known = [c for c in costs.choices(group) if c.source is Source.MEASURED]
        assert [(c.layouts.results[0], c.cost) for c in known] == [(layout, 0.125)]


def test_profiles_tell_layouts_of_groups_without_any() -> None:
    """The others are as much slower than predicted as the one that was measured."""
    group = negation(shape=(2, 16, 4, 5), layout=Layout.row_major(4))
    before = {c.layouts: c.cost for c in layout_costs("seconds", {}).choices(group)}
    rows, last, *_ = before
    group.attributes[SECONDS] = FloatAttr(0.5, f64)
    group.attributes[LAYOUT_SECONDS] = DictionaryAttr({str(last): FloatAttr(0.25, f64)})
    after = {c.layouts: c for c in layout_costs("seconds", {}).choices(group)}
    assert (after[last].cost, after[last].source) == (0.25, Source.MEASURED)
    ratio = 0.25 / (before[last] - LAUNCH)
    assert after[rows].cost == pytest.approx(LAUNCH + ratio * (before[rows] - LAUNCH))
    assert after[rows].source is Source.FAMILY
    costs = CostSource(load_target("host"), {})
    assert costs.cost(group, layouts=last).seconds == 0.25
    assert costs.cost(group).seconds == 0.5


def test_rows_cost_the_same_of_any_table() -> None:
    target = load_target("npu-small")
    costs = CostSource(target, {})

    def gather(rows):
        block = Block(arg_types=[TensorType(f32, [rows, 768]), TensorType(i64, [128])])
        block.add_op(op := GatherOp.get(*block.args, 0))
        return op

    def grouped(op):
        body, operands = op.parent, Block(arg_types=op.parent.arg_types)
        body.add_op(YieldOp(op.output))
        return FusedOp(operands.args, [op.output.type], body)

    host, chip = target.device("cpu:0"), target.device("npu:0")
    small, large = gather(1000), gather(50000)
    assert costs.cost(small, host) == costs.cost(large, host)
    # A chip has the table on board before it gathers.
    assert 40 * costs.cost(small, chip).seconds < costs.cost(large, chip).seconds
    small, large = grouped(small), grouped(large)
    assert costs.cost(small, host) == costs.cost(large, host)
    assert costs.cost(small, host).source == Source.FAMILY
