"""`select-layouts` against all layouts there are, on random modules, with decisions verified.

`make test` takes the first hundreds of seeds, `make slow` ten thousand.
"""

import math

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.decision_checks import verifying_decisions
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.errors import InfeasibleError
from braid.universe import make_context
from test.unit.passes.layout.brute_force import BruteForce
from test.unit.passes.layout.random_layouts import random_layouts

MOST = 3000
"""Modules with a function of more assignments are left out."""

CHUNK = 100


def check(seed: int) -> bool:
    """Whether the module of `seed` was small enough; asserts that it gets its best layouts."""
    context = make_context()
    module = parse_mlir(context, random_layouts(seed), "f.mlir").module
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    brute = [BruteForce(module, function) for function in functions]
    if any(each.assignments() > MOST for each in brute):
        return False
    expected = [each.least() for each in brute]
    costs = _selected(module)
    if any(map(math.isinf, expected)):
        assert costs is None, f"seed {seed}: {costs} instead of infeasible"
    else:
        assert costs == pytest.approx(expected, rel=1e-9, abs=1e-12), f"seed {seed}"
    return True


def _selected(module: ModuleOp) -> list[float] | None:
    """Return the proven costs of the functions; None if they are infeasible."""
    with collect_remarks() as remarks, verifying_decisions():
        try:
            run_pipeline(make_context(), module, "select-layouts,apply-layouts")
        except InfeasibleError:
            return None
    assert all(remark.data["gap"] == pytest.approx(0, abs=1e-9) for remark in remarks)
    return [float(str(remark.data["cost"])) for remark in remarks]


def test_a_hundred_modules() -> None:
    assert sum(map(check, range(CHUNK))) > CHUNK // 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 40 * 500, 500))
def test_thousands_of_modules(first: int) -> None:
    assert sum(map(check, range(first, first + 500))) > 250
