"""`reorder-sums` on random graphs of sums: meaning and memory."""

from random import Random

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Operation, SSAValue

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.interpreter import interpret
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.order.reorder_sums import reorder, sums_of
from braid.universe import make_context


def random_sums(seed: int, size: int) -> func.FuncOp:
    """Terms made of earlier terms, and sums of up to six of them; all are used."""
    random = Random(seed)
    function = func.FuncOp("main", ((TensorType(f32, [8]),), ()))
    values: list[SSAValue] = [*function.args]

    def add(name: str, *operands: SSAValue) -> SSAValue:
        op = elementwise(name, *operands)
        function.body.block.add_op(op)
        return op.output

    for _ in range(size):
        terms = random.sample(values[-7:], random.randint(1, min(6, len(values))))
        total = terms[0]
        for term in terms[1:]:
            total = add("add", *random.sample([total, term], 2))
        values.append(add("tanh", total))
    last = next(value for value in values if not value.uses)
    for value in [value for value in values if not value.uses and value is not last]:
        last = add("add", last, value)
    function.body.block.add_op(func.ReturnOp(last))
    function.update_function_type()
    return function


@pytest.mark.parametrize("seed", range(30))
def test_any_order_of_terms_computes_the_same(seed: int) -> None:
    function = random_sums(seed, 12)
    module = ModuleOp([function])
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    (expected,) = interpret(module, [x])
    ops: list[Operation] = list(function.body.block.ops)
    places = Random(seed).sample(range(len(ops)), len(ops))
    terms = [sorted(map(id, total.terms)) for total in sums_of(function)]
    assert reorder(function, dict(zip(ops, places, strict=True))) > 0
    module.verify()
    assert [sorted(map(id, total.terms)) for total in sums_of(function)] == terms
    (actual,) = interpret(module, [x])
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_a_sum_that_is_read_twice_is_a_term_of_another() -> None:
    function = func.FuncOp("main", ((TensorType(f32, [8]),), ()))
    body = function.body.block

    def op(name: str, *operands: SSAValue | ElementwiseOp) -> ElementwiseOp:
        body.add_op(made := elementwise(name, *operands))
        return made

    a, b, c, d = (op(name, *function.args) for name in ("exp", "neg", "abs", "sin"))
    inner = op("add", op("add", c, b), a)
    outer = op("add", op("add", d, inner), a)
    body.add_op(func.ReturnOp(inner, outer))
    function.update_function_type()
    module = ModuleOp([function])
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    expected = interpret(module, [x])
    assert reorder(function, {op: place for place, op in enumerate(body.ops)}) == 2
    module.verify()
    np.testing.assert_allclose(interpret(module, [x]), expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_peak_never_grows(seed: int) -> None:
    peaks: list[float] = []
    for passes in ("search-order", "reorder-sums,search-order"):
        module = ModuleOp([random_sums(seed, 10)])
        with collect_remarks() as remarks:
            run_pipeline(make_context(), module, passes)
        peaks.append(next(r.data["cost"] for r in reversed(remarks) if "before" in r.data))
    assert peaks[1] <= peaks[0]
