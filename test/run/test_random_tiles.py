"""Random graphs whose ops share tiled kernels: before fusion, after it, and compiled."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

import braid
from braid.analysis.interpreter import interpret
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.ports import name_dictionaries
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.driver.pipeline import graph_passes
from braid.passes.fusion.select_fusion import SelectFusionPass
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.machines.load import load_target
from braid.universe import make_context

RULES = str(Path(__file__).parents[1] / "passes" / "fusion" / "Inputs" / "always-tiles.toml")
SHAPE = (2, 6, 5)


def unary(draw, b, x):
    return b.insert(elementwise(draw(st.sampled_from(["neg", "tanh", "abs"])), x)).output


def less_its_mean(draw, b, x):
    reduced = b.insert(ReduceOp.get(x, draw(st.sampled_from(["add", "maximum"])), [draw(dims)]))
    return b.insert(elementwise("sub", x, reduced.output)).output


def softmax(draw, b, x):
    return b.insert(SoftmaxOp.get(x, draw(dims))).output


def gram(draw, b, x):
    """Return the scaled products of all rows, times the rows again: the form of attention."""
    turned = b.insert(TransposeOp.get(x, [0, 2, 1])).output
    products = b.insert(MatmulOp.on(x, turned)).output
    weights = b.insert(SoftmaxOp.get(products, 2)).output if draw(st.booleans()) else products
    return b.insert(MatmulOp.on(weights, x)).output


def transpose(draw, b, x):
    return b.insert(TransposeOp.get(x, draw(st.permutations(range(3))))).output


def pad(draw, b, x):
    low, high = (draw(st.lists(st.integers(0, 2), min_size=3, max_size=3)) for _ in range(2))
    return b.insert(PadOp.get(x, low, high, 0.5)).output


def cut(draw, b, x):
    bounds = [sorted(draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
              for n in shape_of(x)]  # fmt: skip
    return b.insert(SliceOp.get(x, [a for a, _ in bounds], [z - a + 1 for a, z in bounds])).output


def join(draw, b, x):
    return b.insert(ConcatOp.get([x, unary(draw, b, x)], draw(dims))).output


def regroup(draw, b, x):
    batch, rows, columns = shape_of(x)
    shapes = [(batch * rows, 1, columns), (1, batch, rows * columns), (batch, columns, rows)]
    return b.insert(ReshapeOp.get(x, draw(st.sampled_from(shapes)))).output


dims = st.integers(0, 2)
STEPS = [unary, less_its_mean, softmax, gram, transpose, pad, cut, join, regroup]


@st.composite
def modules(draw):
    block = Block(arg_types=[TensorType(f32, SHAPE)])
    builder = Builder(InsertPoint.at_end(block))
    value = block.args[0]
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=6)):
        if np.prod(shape_of(value)) < 3000:
            value = step(draw, builder, value)
    builder.insert(func.ReturnOp(value))
    types = ([block.args[0].type], [value.type])
    main = func.FuncOp(
        "main",
        types,
        Region(block),
        arg_attrs=name_dictionaries(["x"]),
        res_attrs=name_dictionaries(["y"]),
    )
    return ModuleOp([main])


def array():
    return np.random.default_rng(0).uniform(-2, 2, SHAPE).astype(np.float32)


def close(actual, expected):
    """Programs that overflow f32 prove nothing: infinities depend on the order of sums."""
    assume(np.isfinite(expected).all())
    assert np.abs(actual - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_fusion_keeps_the_meaning(module):
    (expected,) = interpret(module, [array()])
    fused = module.clone()
    run_pipeline(make_context(), fused, f'select-fusion{{rules="{RULES}"}},apply-fusion')
    assert any(isinstance(op, FusedOp) for op in fused.walk()) or not _computes(module)
    (actual,) = interpret(fused, [array()])
    close(actual, expected)


# Without shrinking: every step of it would compile several kernels.
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(modules())
def test_compiled_is_interpreted(module):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("braid.lowering.host.kernel_needs.available_cpus", lambda: 2)
        passes = [
            SelectFusionPass(rules=RULES) if isinstance(p, SelectFusionPass) else p
            for p in graph_passes(load_target())
        ]
        (expected,) = interpret(module, [array()])
        close(braid.compile(module, passes=passes, threads=2)(array()), expected)


def _computes(module):
    return any(op.name != "braid.reshape" and op.name.startswith("braid.") for op in module.walk())
