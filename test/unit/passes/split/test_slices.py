"""Slices and concatenations between split ops: the values stay, whatever is cut or joined."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32

from braid.analysis.interpreter import interpret
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context


def chain(random: Random, shape: list[int]) -> ModuleOp:
    """Three ops on a tensor of `shape`, random slices and concatenations between them."""
    main = func.FuncOp("main", ([TensorType(f32, shape)], []))
    block = main.body.block
    value = block.args[0]
    for kind in ("neg", "exp", "abs"):
        op = elementwise(kind, value)
        sizes = [random.choice([extent, random.randint(1, extent)]) for extent in shape]
        offsets = [random.randint(0, e - s) for e, s in zip(shape, sizes, strict=True)]
        cut = SliceOp.get(op.results[0], offsets, sizes)
        block.add_ops([op, cut])
        value, shape = cut.results[0], sizes
        if random.random() < 0.5:
            dim = random.randrange(3)
            other = elementwise("sign", value)
            both = ConcatOp.get([value, other.results[0]], dim)
            block.add_ops([other, both])
            value, shape = both.results[0], [*shape[:dim], 2 * shape[dim], *shape[dim + 1 :]]
    block.add_op(func.ReturnOp(value))
    main.update_function_type()
    return ModuleOp([main])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(16, 400), st.booleans())
def test_values_stay(seed: int, memory: int, follow: bool) -> None:
    random = Random(seed)
    shape = [random.randint(2, 7) for _ in range(3)]
    module = chain(random, shape)
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    before = interpret(module, [x])
    asked = str(follow).lower()
    select = f"select-splits{{memory={memory} follow-readers={asked}}}"
    run_pipeline(make_context(), module, f"{select},apply-splits{{through-concats={asked}}}")
    np.testing.assert_array_equal(interpret(module, [x])[0], before[0])
