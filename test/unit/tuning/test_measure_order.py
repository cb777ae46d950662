"""Orders are chosen by running them, and what they compute stays the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.analysis.execution.inter_op_streams import set_inter_op_stream
from braid.analysis.interpreter import interpret
from braid.dialects.braid.attribute_names import INTER_OP_STREAM, INTER_OP_STREAMS, ORDER
from braid.dialects.braid.order import plain_orders
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.machines.resolve import target_of
from braid.tuning.measure_order import MeasureOrderPass, Measuring, Prepare
from braid.tuning.order_timing import Run, prepare_on_host
from braid.universe import make_context

TWO_BRANCHES = """
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %w = braid.parameter {key = "w"} : tensor<16x16xf32>
  %0 = braid.exp %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = braid.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %2 = braid.tanh %1 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = braid.neg %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = braid.add %2, %3 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  func.return %4 : tensor<8x16xf32>
}
"""


def module_of(text: str) -> ModuleOp:
    return parse_mlir(make_context(), text, "f.mlir").module


def order_of(module: ModuleOp) -> tuple[int, ...]:
    function = module.body.block.first_op
    assert function is not None
    orders = plain_orders(function.attributes[ORDER])
    assert orders is not None
    return orders[0]


def measured(module: ModuleOp, prepare: Prepare = prepare_on_host, **options: Any) -> list[Remark]:
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, "search-order")
        Measuring(MeasureOrderPass(**options), prepare, target_of(module)).run(module)
    return [remark for remark in remarks if remark.pass_name == "measure-order"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def names(module: ModuleOp) -> Sequence[str]:
    function = module.body.block.first_op
    assert function is not None
    return [op.name for op in function.regions[0].block.ops]


def with_neg_first(module: ModuleOp) -> Run:
    """Return a machine on which `neg` must come before the product."""
    ops = names(module)
    seconds = 1.0 if ops.index("braid.neg") < ops.index("braid.matmul") else 2.0
    return lambda: seconds


def test_the_fastest_order_is_chosen() -> None:
    module = module_of(TWO_BRANCHES)
    (remark,) = measured(module, with_neg_first, candidates=3)
    assert remark.data["seconds"] == 1.0
    assert remark.data["candidates"] == 3
    run_pipeline(make_context(), module, "apply-order")
    ops = names(module)
    assert ops.index("braid.neg") < ops.index("braid.matmul")


def test_the_order_searched_stays_where_none_is_clearly_faster() -> None:
    searched = module_of(TWO_BRANCHES)
    run_pipeline(make_context(), searched, "search-order")
    module = module_of(TWO_BRANCHES)
    times = iter([1.0, 0.99, 0.98])

    def prepare(module: ModuleOp) -> Run:
        seconds = next(times)
        return lambda: seconds

    (remark,) = measured(module, prepare, candidates=3)
    assert remark.data["chosen"] == 0
    assert order_of(module) == order_of(searched)


def test_nothing_is_measured_after_the_time_limit() -> None:
    module = module_of(TWO_BRANCHES)
    assert not measured(module, time_limit=0.0)
    assert sorted(order_of(module)) == list(range(6))


def test_orders_are_run_on_this_machine() -> None:
    runs: list[Run] = []

    def prepare(module: ModuleOp) -> Run:
        runs.append(prepare_on_host(module))
        return runs[-1]

    module = module_of(TWO_BRANCHES)
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    w = np.eye(16, dtype=np.float32)
    expected = interpret(module, [x], parameters={"w": w})
    (remark,) = measured(module, prepare)
    assert len(runs) == remark.data["candidates"] > 1
    seconds = remark.data["seconds"]
    assert isinstance(seconds, float) and seconds > 0
    run_pipeline(make_context(), module, "apply-order")
    np.testing.assert_array_equal(interpret(module, [x], parameters={"w": w}), expected)


def test_the_pass_measures_on_its_own() -> None:
    module = module_of(TWO_BRANCHES)
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, "measure-order{candidates=2},apply-order")
    assert [r.pass_name for r in remarks].count("measure-order") == 1
    assert {r.pass_name for r in remarks} == {"search-order", "measure-order"}


def test_streams_are_chosen_by_running_them() -> None:
    """On a machine where nothing gains from running beside another, all runs alone."""

    def prepare(module: ModuleOp) -> Run:
        seconds = 1.0 + len([op for op in module.walk() if INTER_OP_STREAM in op.attributes])
        return lambda: seconds

    module = module_of(TWO_BRANCHES)
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, "assign-inter-op-streams")
        for op in module.walk():
            if op.name in ("braid.matmul", "braid.neg"):
                set_inter_op_stream(op, 0 if op.name == "braid.neg" else 1)
        Measuring(MeasureOrderPass(streams=2), prepare, target_of(module)).run(module)
    measured = [r for r in remarks if r.pass_name == "measure-order"]
    assert [r.data["seconds"] for r in measured] == [1.0]
    assert not [op for op in module.walk() if INTER_OP_STREAM in op.attributes]


def test_schedules_on_streams_are_run_on_this_machine() -> None:
    module = module_of(TWO_BRANCHES)
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, "measure-order{candidates=3 streams=2},apply-order")
    (remark,) = [r for r in remarks if r.pass_name == "measure-order"]
    assert remark.data["candidates"] in (2, 3)
    function = module.body.block.first_op
    assert function is not None and function.attributes[INTER_OP_STREAMS] == IntegerAttr(2, i64)
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    w = np.eye(16, dtype=np.float32)
    expected = interpret(module_of(TWO_BRANCHES), [x], parameters={"w": w})
    np.testing.assert_array_equal(interpret(module, [x], parameters={"w": w}), expected)
