"""Elementary functions of f32 compared with numpy's in f64, over all numbers."""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import SSAValue

from braid.dialects.braid.elementwise import ELEMENTWISE, ElementwiseOp, elementwise
from braid.dialects.braid.relayout import Array
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.targets.machines.machine import Machine
from test.machines import AVX2, HOST, SSE, distinct
from test.run.kernels.conftest import candidate_of, make_group
from test.schedules import emitted

MOST_ULP = {
    "sin": 1.55,
    "cos": 1.55,
    "tan": 0.51,
    "asin": 1.7,
    "acos": 1.3,
    "atan": 1.3,
    "sinh": 0.51,
    "cosh": 0.51,
    "asinh": 0.51,
    "acosh": 0.51,
    "atanh": 0.51,
    "pow": 0.51,
}
"""Units in the last place of the exact result: the bounds in `docs/numerics.md`."""
MACHINES = pytest.mark.parametrize(
    "machine", distinct(HOST, AVX2, SSE), ids=lambda machine: machine.name
)
_POINTS = np.array(
    [0, 1, 0.5, 2, 3, np.inf, np.nan, 1e-45, 2.0**-14, 2.0**20, 2.0**24 - 1, 1e30, 3.4e38],
    np.float32,
)
_AROUND = np.concatenate([_POINTS, *(np.nextafter(_POINTS, np.float32(e)) for e in (0, np.inf))])
EDGES = np.concatenate([_AROUND, -_AROUND])
ALL = np.arange(0, 1 << 32, 2039, dtype=np.uint64).astype(np.uint32).view(np.float32)
"""Some 4,000 of each binade and sign."""
USUAL = np.concatenate([np.linspace(-end, end, 100_001, dtype=np.float32) for end in (1, 4, 100)])


def computed(name: str, operands: Sequence[Array], machine: Machine) -> Array:
    def build(*arguments: SSAValue) -> tuple[list[ElementwiseOp], list[SSAValue]]:
        op = elementwise(name, *arguments)
        return [op], [op.output]

    group = make_group([TensorType(f32, x.shape) for x in operands], build)
    kernel = emitted(candidate_of(ElementwiseFamily(machine), group), {"unroll": 2})
    result = np.empty_like(operands[0])
    CallableKernel(kernel)(*operands, result)
    return result


def assert_close(name: str, operands: Sequence[Array], machine: Machine) -> None:
    """Check that values that are not finite, and signs, are equal, and other errors within the
    bound."""
    with np.errstate(all="ignore"):
        exact = ELEMENTWISE[name].ROW.function(*(x.astype(np.float64) for x in operands))
        nearest = exact.astype(np.float32)
        got = computed(name, operands, machine)
        finite = np.isfinite(nearest)
        assert np.array_equal(got[~finite], nearest[~finite], equal_nan=True)
        numbers = ~np.isnan(nearest)
        assert np.array_equal(np.signbit(got[numbers]), np.signbit(nearest[numbers]))
        errors = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(nearest))
    worst = np.where(finite, errors, 0).argmax()
    assert errors[worst] <= MOST_ULP[name], [x[worst] for x in operands]


@MACHINES
@pytest.mark.parametrize("name", [name for name in MOST_ULP if name != "pow"])
def test_errors_in_ulp(name: str, machine: Machine) -> None:
    assert_close(name, [np.concatenate([EDGES, USUAL, ALL])], machine)


@MACHINES
def test_errors_of_powers(machine: Machine) -> None:
    generator = np.random.default_rng(0)
    bases, exponents = (a.ravel() for a in np.meshgrid(EDGES, EDGES))
    near_one = 1 + 1e-4 * generator.standard_normal(ALL.shape)
    some, whole = generator.standard_normal(ALL.shape), generator.integers(-6, 7, ALL.shape)
    x = np.concatenate([bases, ALL, ALL, near_one.astype(np.float32)])
    y = np.concatenate([exponents, *(a.astype(np.float32) for a in (some * 3, whole, some * 1e5))])
    assert_close("pow", [x, y], machine)


@MACHINES
def test_angles_close_to_quarters_of_a_turn(machine: Machine) -> None:
    """Angles of which almost nothing is left after reduction, including large ones."""
    quarters = np.concatenate([np.arange(1, 200_000), np.geomspace(2e5, 2e38, 20_000)])
    near = (quarters * (np.pi / 2)).astype(np.float32)
    # The multiple of π/2 that is the closest one to any f32, relative to it.
    near = np.append(near, np.float32(16367173.0 * 2.0**72))
    for name in ("sin", "cos", "tan"):
        assert_close(name, [near], machine)
