"""Random functions of nested control flow, compiled: as interpreted, recomputed by thresholds too.

Switches, branches and loops that read what blocks around them make; decisions are verified.
"""

from pathlib import Path
from random import Random

import numpy as np
import pytest

import braid
from braid.analysis.interpreter import interpret
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.unit.passes.rematerialization.random_programs import ARGUMENTS, random_program


def check(seed: int, folder: Path) -> bool:
    """Whether the function of `seed` can be compiled, since it has no opaque ops."""
    text, is_opaque = random_program(seed)
    if is_opaque:
        return False
    file = folder / f"{seed}.mlir"
    file.write_text(text)
    random = Random(seed)
    recompute = random.choice([None, "tensor-threshold=0", "tensor-threshold=15 jump-threshold=0"])
    model = braid.compile(file, recompute=recompute)
    values = np.random.default_rng(seed)
    module = parse_mlir(make_context(), text, file.name).module
    tensors = [values.integers(-9, 9, shape).astype(np.float32) for _, shape in ARGUMENTS]
    for flag, number in ((True, 0), (False, 3), (True, 1)):
        inputs = [np.array(flag), np.array(number), *tensors]
        found = model(*inputs)
        found = found if isinstance(found, list | tuple) else [found]
        for actual, right in zip(found, interpret(module, inputs), strict=True):
            np.testing.assert_allclose(actual, right, rtol=1e-5, err_msg=f"seed {seed}")
    return True


def test_few_functions(tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path) for seed in range(8)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 100))
def test_hundreds_of_functions(first: int, tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path) for seed in range(first, first + 100)) > 40
