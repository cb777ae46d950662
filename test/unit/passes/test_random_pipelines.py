"""Random pipelines over random modules: nothing crashes, claims hold, results stay.

`make test` takes some, `make slow` thousands. A pass may refuse a module.
"""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from benchmarks.generators.opaque_modules import random_module
from braid.analysis.interpreter import interpret
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import PassCrashError
from braid.support.errors import UnsupportedError
from braid.universe import make_context
from test.unit.passes.layout.random_layouts import random_layouts
from test.unit.passes.random_pipelines import LOWERING, random_pipeline, run_where_possible
from test.unit.passes.rematerialization.random_programs import ARGUMENTS, random_program
from test.unit.passes.test_declared_facts import random_module as declared_module

FOUND = (4, 9, 17, 25, 26, 38, 50, 53, 70, 106, 680, 800, 1292, 2095, 2116)
FOUND_LATER = (700200, 700210, 700220, 700316)
"""Seeds that found something."""


def _parsed(text: str) -> ModuleOp:
    return parse_mlir(make_context(), text, "f.mlir").module


MODULES: dict[str, Callable[[int], ModuleOp]] = {
    "layouts": lambda seed: _parsed(random_layouts(seed)),
    "regions": lambda seed: _parsed(random_program(seed)[0]),
    "orders": lambda seed: random_module(seed, seed % 12 + 1, parameters=0.3),
    "declared": lambda seed: _parsed(declared_module(seed)),
}


def results(module: ModuleOp) -> list[np.ndarray]:
    values = np.random.default_rng(0)
    inputs = [np.array(True), np.array(2)]
    inputs += [values.integers(-9, 9, shape).astype(np.float32) for _, shape in ARGUMENTS]
    return interpret(module, inputs)


def check(kind: str, seed: int) -> None:
    """Run one pipeline and, if the module can be interpreted, interpret it before and after."""
    random = Random(seed)
    module = MODULES[kind](seed)
    pipeline = [*random_pipeline(random, random.randint(2, 8))]
    what = f"{kind}, seed {seed}: {','.join(pipeline)}"
    try:
        after, ran = run_where_possible(module, iter(pipeline))
        if kind == "regions" and "braid.opaque" not in str(module):
            for actual, right in zip(results(after), results(module), strict=True):
                np.testing.assert_allclose(actual, right, rtol=1e-5, err_msg=f"{what}; ran {ran}")
        run_where_possible(after, iter(LOWERING))
    except (PassCrashError, UnsupportedError) as error:
        raise AssertionError(f"{what}: {error}") from error


@pytest.mark.parametrize("kind", MODULES)
def test_some_pipelines(kind: str) -> None:
    for seed in (*range(4), *FOUND, *FOUND_LATER):
        check(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("first", range(0, 2000, 250))
def test_thousands_of_pipelines(kind: str, first: int) -> None:
    for seed in range(first, first + 250):
        check(kind, seed)
