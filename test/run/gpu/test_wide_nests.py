"""Elementwise kernels with wide accesses: random shapes, types and broadcasts, and their code."""

import re
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, f64, i1, i8

from braid.dialects.braid.elementwise import elementwise
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.nests import lanes, wide_nest
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu

TYPES = (f32, bf16, f16, f64)
RNG = np.random.default_rng(0)


def random_group(seed: int) -> Any:
    """Return a chain on operands of one type, some of which are broadcast."""
    rng = np.random.default_rng(seed)
    element = TYPES[rng.integers(len(TYPES))]
    shape = [int(rng.choice([1, 2, 3, 5, 8, 16, 33])) for _ in range(rng.integers(1, 4))]
    shapes = [shape, *([n if rng.integers(2) else 1 for n in shape] for _ in range(2))]

    def build(*x: Any) -> Any:
        first = elementwise("add", x[0], x[1])
        second = elementwise("abs", first)
        return [first, second, elementwise("mul", second, x[2])]

    return make_group([TensorType(element, s) for s in shapes], build, ())


@pytest.mark.parametrize("seed", range(8))
def test_random_chains(seed: int) -> None:
    check_group(random_group(seed), emit_fallback, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_two_hundred_random_chains(seed: int) -> None:
    check_group(random_group(seed), emit_fallback, seed=seed)


def test_bools_between_nests() -> None:
    """They are bytes in memory, and in vectors bits."""
    group = make_group(
        [TensorType(i1, (3, 50))],
        lambda x: [elementwise("cast", x, element_type=type) for type in (f32, i8, i1)],
        (),
        True,
    )
    check_group(group, emit_fallback, {0: np.arange(150).reshape(3, 50) % 3 == 0})


def chain(element: Any, *shape: int) -> Any:
    type = TensorType(element, shape)
    row = TensorType(element, (*(1 for _ in shape[1:]), shape[-1]))
    return make_group(
        [type, row],
        lambda x, r: [a := elementwise("add", x, r), elementwise("mul", a, x)],
        (),
    )


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("element", [f32, bf16], ids=str)
def test_accesses_are_wide(element: Any, architecture: str) -> None:
    kernel = emit_fallback(chain(element, 64, 256), "tested")
    (code,) = compile_gpu_kernels([kernel], gpu(architecture), host_machine(), jobs=1)
    text = code.ptx.decode()
    wide = re.findall(r"(ld|st)\.global\.v4\.b32|(ld|st)\.global\.v2\.b64", text)
    assert len(wide) == 3, text  # two operands and the result


def test_a_tail_that_is_off_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one point more than exist, the last thread writes out of bounds."""
    own = wide_nest.WideNest.points.fget
    assert own is not None
    monkeypatch.setattr(wide_nest.WideNest, "points", property(lambda nest: own(nest) + 1))
    with pytest.raises(BraidError, match=r"at offset 132 of .*, which has 132"):
        check_group(chain(f32, 33), emit_fallback)


def test_a_wrong_alignment_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 33 elements do not begin at multiples of 16 bytes."""
    monkeypatch.setattr(wide_nest.WideNest, "threads", property(lambda nest: nest.points))
    group = chain(f32, 2, 32)
    original = lanes.load_vector

    def shifted(builder: Any, buffer: Any, index: Any, width: int) -> Any:
        if not isinstance(index, list):
            return original(builder, buffer, index, width)
        one = wide_nest.index_constant(builder, 1)
        index[-1] = builder.insert(wide_nest.arith.AddiOp(index[-1], one)).result
        return original(builder, buffer, index, width)

    monkeypatch.setattr(lanes, "load_vector", shifted)
    with pytest.raises(BraidError, match="which is not aligned to 16"):
        check_group(group, emit_fallback)
