"""Declared costs of opaque ops, as attributes and as plain numbers."""

import pytest
from xdsl.dialects.builtin import DictionaryAttr, StringAttr, TensorType, f32, f64
from xdsl.ir import Block
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.opaque import OpaqueOp, cost_attribute, plain_cost
from braid.support.errors import UnsupportedError

TYPE = TensorType(f32, [4])


@pytest.mark.parametrize("cost", [2.5e-3, {"matrix": 1.0, "vector": 0.0}])
def test_cost_is_read_as_it_was_given(cost) -> None:
    op = OpaqueOp.get("work", Block(arg_types=[TYPE]).args, [TYPE, TYPE], cost=cost)
    op.verify()
    assert op.declared_cost == cost
    assert plain_cost(cost_attribute(cost)) == cost


def test_without_cost() -> None:
    assert OpaqueOp.get("work", [], [TYPE]).declared_cost is None


def test_other_forms_of_cost_are_refused() -> None:
    with pytest.raises(VerifyException, match="expected a number"):
        plain_cost(StringAttr("fast"))
    with pytest.raises(VerifyException, match="expected a number"):
        plain_cost(DictionaryAttr({"cpu": f64}))


def test_it_cannot_run() -> None:
    with pytest.raises(UnsupportedError, match="opaque op 'work' cannot be run"):
        OpaqueOp.get("work", [], [TYPE]).evaluate()
