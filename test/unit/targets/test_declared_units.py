"""Declared costs of units mean the same to costs and to the simulator of the units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.dialects.braid.opaque import OpaqueOp
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.machines.load import load_target
from braid.targets.simulator.steps import step_seconds, steps_of
from braid.universe import make_context

BACKEND = load_target("npu-small").default_backend


def declaring(cost: str) -> OpaqueOp:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = braid.opaque "f"(%x) {{cost = {{{cost}}}}} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }}"""
    ops = parse_mlir(make_context(), text, "d.mlir").module.walk()
    return next(op for op in ops if isinstance(op, OpaqueOp))


NAMES = ("load", "matrix", "vector", "store")


@given(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 9), min_size=1))
def test_both_read_the_same(micros: dict[str, int]) -> None:
    op = declaring(", ".join(f"{name} = {n}.0e-6 : f64" for name, n in micros.items()))
    costs = DeviceCosts(BACKEND)
    steps = [step_seconds(step, costs) for step in steps_of(op, BACKEND)]
    assert sum(steps) == pytest.approx(costs.cost(op).seconds)
    assert sum(steps) == pytest.approx(1e-6 * sum(micros.values()))


@pytest.mark.parametrize(
    "cost", ["matrx = 7.0e-6 : f64", "vector = 1.0e-6 : f64, matrx = 7.0e-6 : f64"]
)
def test_both_refuse_what_is_misspelled(cost: str) -> None:
    op = declaring(cost)
    with pytest.raises(BraidError, match="'matrx'") as simulated:
        steps_of(op, BACKEND)
    with pytest.raises(BraidError, match="'matrx'") as costed:
        DeviceCosts(BACKEND).cost(op)
    assert simulated.value.hint == costed.value.hint == "did you mean 'matrix'?"


def test_other_resources_take_no_time_beside_seconds() -> None:
    op = declaring("seconds = 3.0e-6 : f64, energy = 5.0 : f64")
    assert DeviceCosts(BACKEND).cost(op).seconds == pytest.approx(3e-6)
    (step,) = steps_of(op, BACKEND)
    assert step_seconds(step, DeviceCosts(BACKEND)) == pytest.approx(3e-6)
