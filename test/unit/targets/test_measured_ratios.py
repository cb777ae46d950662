"""What was tried on a device corrects the predictions for groups that were not."""

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.support.records.record_store import Record, default_store
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.op_amounts import kinds_of
from braid.targets.costs.probe_records import PROBE, Probe, device_scope, keep_probes
from braid.targets.kernels.keys import canonical_kernel_text
from braid.targets.machines.load import load_target
from braid.universe import make_context

HOST = load_target("host")
DESCRIPTION = HOST.backend_of(HOST.host_device)
CONV = """
func.func @main(%x: tensor<1x{c}x{s}x{s}xf32>, %w: tensor<{c}x{c}x1x1xf32>) -> !r {{
  %0 = braid.fused(%x, %w) : (tensor<1x{c}x{s}x{s}xf32>, tensor<{c}x{c}x1x1xf32>) -> !r {{
  ^bb0(%a: tensor<1x{c}x{s}x{s}xf32>, %b: tensor<{c}x{c}x1x1xf32>):
    %1 = braid.conv %a, %b {{strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
      pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64}} :
      (tensor<1x{c}x{s}x{s}xf32>, tensor<{c}x{c}x1x1xf32>) -> !r
    braid.yield %1 : !r
  }}
  func.return %0 : !r
}}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def conv(channels: int, size: int) -> FusedOp:
    text = CONV.format(c=channels, s=size)
    text = text.replace("!r", f"tensor<1x{channels}x{size}x{size}xf32>")
    module = parse_mlir(make_context(), text, "conv.mlir").module
    KEPT.append(module)
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    return group


KEPT: list[ModuleOp] = []


def predicted(group: Operation) -> float:
    """Without any record, start included."""
    costs = CostSource(HOST, {}).on(HOST.host_device)
    cost = costs.cost(group)
    return cost.seconds + costs.start_of(cost)


def probe_of(group: FusedOp, ratio: float) -> Probe:
    before = predicted(group)
    return Probe(
        canonical_kernel_text(group),
        "conv",
        "braid.conv",
        "f32",
        of_op=False,
        runs=5,
        seconds=ratio * before,
        predicted=before,
        kinds=CostSource(HOST).on(HOST.host_device).kinds(group),
    )


def keep(*probes: Probe) -> None:
    keep_probes(device_scope(DESCRIPTION, of_op=False), probes)


def test_a_group_that_ran_takes_what_it_took() -> None:
    group = conv(32, 14)
    keep(probe_of(group, 3.0))
    cost = CostSource(HOST).cost(group)
    assert cost.source is Source.MEASURED and cost.started
    assert cost.seconds == pytest.approx(3 * predicted(group))


def test_others_of_its_kind_are_as_far_off() -> None:
    keep(*(probe_of(conv(channels, 14), 0.5) for channels in range(16, 96, 4)))
    like, cost = conv(100, 14), CostSource(HOST).cost(conv(100, 14))
    assert cost.source is Source.CORRECTED
    assert 0.5 < cost.seconds / predicted(like) < 0.6


def test_the_choice_of_layouts_stays_the_same() -> None:
    group = conv(64, 14)
    before = CostSource(HOST, {}).on(HOST.host_device).choices(group)
    keep(*(probe_of(conv(channels, 14), 4.0) for channels in range(16, 60, 4)))
    costs = CostSource(HOST).on(HOST.host_device)
    after = costs.choices(group)
    assert [choice for choice, _ in after] == [choice for choice, _ in before]
    pairs = [(a, b) for (_, a), (_, b) in zip(after, before, strict=True)]
    ratios = {a.seconds / (b.seconds + costs.launch_seconds) for a, b in pairs}
    assert max(ratios) == pytest.approx(min(ratios)) and min(ratios) > 2
    for choice, cost in after:
        assert costs.cost(group, choice).seconds == pytest.approx(cost.seconds)


def test_predictions_of_other_kinds_stay() -> None:
    keep(*(probe_of(conv(channels, 14), 0.5) for channels in range(16, 96, 4)))
    text = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = braid.fused(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>):
    %1 = braid.exp %a : (tensor<64x64xf32>) -> tensor<64x64xf32>
    braid.yield %1 : tensor<64x64xf32>
  }
  func.return %0 : tensor<64x64xf32>
}"""
    module = parse_mlir(make_context(), text, "exp.mlir").module
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    costs = CostSource(HOST).on(HOST.host_device)
    plain = LayoutChoice((Layout.row_major(2),), (Layout.row_major(2),))
    cost = costs.cost(group, plain)
    assert cost.seconds + costs.start_of(cost) == pytest.approx(predicted(group))


def test_records_that_do_not_hold_are_as_none() -> None:
    group = conv(32, 14)
    scope = device_scope(DESCRIPTION, of_op=False)
    whole = {"scope": scope, **vars(probe_of(group, 3.0)), "kinds": ["a"]}
    for number, damage in enumerate(({"seconds": -1.0}, {"kinds": 3}, {"text": 5}, {"runs": None})):
        default_store().append([Record(PROBE, str(number), {**whole, **damage})])
    assert CostSource(HOST).cost(group).source is Source.FAMILY


def test_records_of_another_device_do_not_count() -> None:
    group = conv(32, 14)
    other = replace(DESCRIPTION, launch_seconds=1e-3)
    keep_probes(device_scope(other, of_op=False), [probe_of(group, 3.0)])
    assert CostSource(HOST).cost(group).source is Source.FAMILY


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [((64, 14), (64, 12), True), ((64, 14), (64, 3), False), ((64, 56), (256, 56), True)],
)
def test_kinds_tell_how_often_weights_are_used(first, second, alike) -> None:
    coarse, middle, *_ = kinds_of(conv(*first), "direct")
    other = kinds_of(conv(*second), "direct")
    assert coarse == other[0] == "direct f32"
    assert (middle == other[1]) is alike
