"""A training step under half of the memory that it takes without a budget."""

from pathlib import Path

import numpy as np
import pytest

import braid
from braid.support.errors import InfeasibleError

STEP = Path(__file__).with_name("training_step.mlir")


def test_gradients_are_equal_in_half_of_the_memory() -> None:
    natural = braid.compile(STEP)
    peak = natural.memory[0].activation_bytes
    bounded = braid.compile(STEP, memory_budget=peak // 2)
    assert bounded.memory[0].activation_bytes <= peak // 2
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(spec.shape).astype(np.float32) for spec in natural.inputs]
    expected = natural.run(inputs)
    assert max(float(np.abs(gradient).max()) for gradient in expected) > 1e-4
    for one, other in zip(bounded.run(inputs), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_budget_below_what_one_op_needs_is_refused() -> None:
    with pytest.raises(InfeasibleError, match=r"is infeasible: .* bytes are needed"):
        braid.compile(STEP, memory_budget="40KiB")
