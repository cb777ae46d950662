"""Drawing branches and loops around graphs."""

import numpy as np
from hypothesis import strategies as st
from onnx import GraphProto, TensorProto, helper

from benchmarks.generators.random_models.draft import Draft, Value


def _info(value: Value, name: str | None = None) -> object:
    return helper.make_tensor_value_info(name or value.name, value.type, value.shape)


def branch(draft: Draft) -> None:
    """If: one of two ops on a value from outside."""
    value = draft.pick(lambda v: v.is_float and v.bound <= 100)
    if value is None:
        return
    condition = draft.pick(lambda v: v.type == TensorProto.BOOL and v.shape == () and v.exact)
    condition = condition or draft.input(TensorProto.BOOL, ())

    def side(op: str) -> GraphProto:
        name = draft.fresh("b")
        node = helper.make_node(op, [value.name], [name])
        return helper.make_graph([node], name, [], [_info(value, name)])

    ops = st.sampled_from(("Neg", "Tanh", "Abs", "Relu"))
    sides = {key: side(draft.draw(ops)) for key in ("then_branch", "else_branch")}
    _add(draft, "If", [condition], value, **sides)


def loop(draft: Draft) -> None:
    """Loop: a carried value that an op changes a fixed number of times."""
    value = draft.pick(lambda v: v.is_float and v.bound <= 100)
    if value is None:
        return
    trips = draft.constant(np.array(draft.draw(st.integers(0, 3)), np.int64))
    going = draft.constant(np.array(True))
    i, c, carried, next_, again = (draft.fresh(k) for k in ("i", "c", "a", "n", "g"))
    body = helper.make_graph(
        [
            helper.make_node(
                draft.draw(st.sampled_from(("Tanh", "Neg", "Abs"))), [carried], [next_]
            ),
            helper.make_node("Identity", [c], [again]),
        ],
        draft.fresh("body"),
        [
            helper.make_tensor_value_info(i, TensorProto.INT64, ()),
            helper.make_tensor_value_info(c, TensorProto.BOOL, ()),
            _info(value, carried),
        ],
        [helper.make_tensor_value_info(again, TensorProto.BOOL, ()), _info(value, next_)],
    )
    _add(draft, "Loop", [trips, going, value], value, body=body)


def _add(draft: Draft, op: str, inputs: list[Value], like: Value, **graphs: GraphProto) -> None:
    name = draft.fresh("v")
    draft.nodes.append(helper.make_node(op, [v.name for v in inputs], [name], **graphs))
    draft.values.append(Value(name, like.type, like.shape, False, like.bound))


DRAWERS = (branch, loop)
