"""Values derived from an op's structure or decomposition equal the op's semantics.

The samples cover every op of the dialect that has one or the other; each is evaluated by numpy
and by its loop nests (or its parts) on the same random operands.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineExpr

from braid.analysis.interpreter import interpret
from braid.analysis.structure.verification import verify_module
from braid.dialects.braid import Braid
from braid.dialects.braid.base import DecomposableOp, IndirectOp, StructuredOp, TensorOp
from braid.dialects.braid.decomposition import decompose_all
from braid.dialects.braid.dtypes import from_numpy
from test.op_samples import DECOMPOSED, STRUCTURED, Build
from test.unit.dialects.loop_nests import run_structure

Array = np.ndarray


def built(build: Build, operands: Sequence[Array]) -> TensorOp:
    """Return the op, checked, as the only one of a block whose arguments are its operands."""
    block = Block(arg_types=[TensorType(from_numpy(x.dtype), x.shape) for x in operands])
    op = build(*block.args)
    block.add_op(op)
    op.verify()
    return op


def assert_same(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    assert len(actual) == len(expected)
    for left, right in zip(actual, expected, strict=True):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        exact = right.dtype.kind in "biu"
        np.testing.assert_allclose(
            left, right, rtol=0 if exact else 2e-5, atol=0 if exact else 1e-5
        )


@pytest.mark.parametrize(
    ("build", "operands"),
    [pytest.param(build, operands, id=name) for name, build, operands in STRUCTURED],
)
def test_structure_computes_what_evaluate_does(build: Build, operands: list[Array]) -> None:
    op = built(build, operands)
    assert isinstance(op, StructuredOp | IndirectOp)
    assert_same(run_structure(op, operands), op.evaluate(*operands))
    for stage in op.structure().stages:
        first = tuple(AffineExpr.dimension(dim) for dim in range(len(stage.result_shape)))
        assert stage.result.results == first
        reduced = set(stage.reduction_dims)
        assert reduced.isdisjoint(range(len(first)))
        assert len(reduced) + len(first) == len(stage.kinds)


@pytest.mark.parametrize(
    ("build", "operands"),
    [pytest.param(build, operands, id=name) for name, build, operands in DECOMPOSED],
)
def test_decomposition_computes_what_evaluate_does(build: Build, operands: list[Array]) -> None:
    op = built(build, operands)
    expected = op.evaluate(*operands)
    block = op.parent
    block.add_op(ReturnOp(*op.results))
    types = [value.type for value in block.args], [value.type for value in op.results]
    module = ModuleOp([FuncOp("main", types, Region(block))])
    assert decompose_all(module) == 1
    assert not any(isinstance(inner, DecomposableOp) for inner in module.walk())
    verify_module(module)
    assert_same(interpret(module, operands), expected)


def test_every_op_is_sampled() -> None:
    sampled = {built(build, operands).name for _, build, operands in [*STRUCTURED, *DECOMPOSED]}
    derived = StructuredOp | IndirectOp | DecomposableOp
    assert sampled == {op.name for op in Braid.operations if issubclass(op, derived)}
