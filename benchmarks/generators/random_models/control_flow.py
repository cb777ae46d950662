"""Drawing branches and loops around graphs."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from benchmarks.generators.random_models.draft import NARROW, Draft, Value

FLOAT_OPS = ("Neg", "Tanh", "Abs", "Relu")
INTEGER_OPS = ("Identity", "Abs", "Sign")
DEEPEST = 2


def _info(value: Value, name: str | None = None) -> object:
    return helper.make_tensor_value_info(name or value.name, value.type, value.shape)


@dataclass
class _Body:
    """The inside of a branch or loop: a chain of ops, perhaps with nested branches."""

    draft: Draft
    value: Value
    """The value that the chain is about: its type, its shape, and its name outside."""
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])

    def chain(self, name: str, depth: int = 0) -> str:
        """Up to three ops on the value `name`; the name of the last result."""
        ops = FLOAT_OPS if self.value.is_float else INTEGER_OPS
        for _ in range(self.draft.draw(st.integers(1, 3))):
            kinds = ("op", "op", "outside", "constant", *(["branch"] if depth < DEEPEST else []))
            kind, made = self.draft.draw(st.sampled_from(kinds)), self.draft.fresh("b")
            if kind == "op":
                self._node(self.draft.draw(st.sampled_from(ops)), [name], made)
            elif kind == "outside":
                self._node(
                    self.draft.draw(st.sampled_from(("Max", "Min"))), [name, self.value.name], made
                )
            elif kind == "constant":
                number = np.array(1, helper.tensor_dtype_to_np_dtype(self.value.type))
                known = self.draft.fresh("k")
                self.nodes.append(
                    helper.make_node("Constant", [], [known], value=numpy_helper.from_array(number))
                )
                self._node(self._extreme(), [name, known], made)
            else:
                self._branch(name, made, depth)
            name = made
        return name

    def _extreme(self) -> str:
        return self.draft.draw(st.sampled_from(("Max", "Min")))

    def _node(self, op: str, inputs: list[str], output: str) -> None:
        self.nodes.append(helper.make_node(op, inputs, [output]))

    def _branch(self, name: str, made: str, depth: int) -> None:
        """Branch on whether the largest element is above 0, which compares only exact values."""
        if not self.value.exact:
            self._node("Identity", [name], made)
            return
        dtype = helper.tensor_dtype_to_np_dtype(self.value.type)
        largest, condition, flat = (self.draft.fresh(kind) for kind in "mcf")
        shape, zero = (
            self.draft.constant(array).name for array in (np.array([-1]), np.array(0, dtype))
        )
        self.nodes += [
            helper.make_node("Reshape", [self.value.name, shape], [flat]),
            helper.make_node("ReduceMax", [flat], [largest], keepdims=0),
            helper.make_node("Greater", [largest, zero], [condition]),
        ]
        sides: dict[str, GraphProto] = {}
        for key in ("then_branch", "else_branch"):
            side = _Body(self.draft, self.value)
            end = side.chain(name, depth + 1)
            sides[key] = helper.make_graph(side.nodes, end, [], [_info(self.value, end)])
        self.nodes.append(helper.make_node("If", [condition], [made], **sides))


def _pick(draft: Draft) -> Value | None:
    """Values that ops and comparisons of all executions know, with elements."""
    return draft.pick(
        lambda v: (
            (v.is_float or v.type in (TensorProto.INT32, TensorProto.INT64))
            and v.bound <= 100
            and 0 not in v.shape
        )
    )


def branch(draft: Draft) -> None:
    """If: one of two chains of ops on a value from outside."""
    value = _pick(draft)
    if value is None:
        return
    condition = draft.pick(lambda v: v.type == TensorProto.BOOL and v.shape == () and v.exact)
    condition = condition or draft.input(TensorProto.BOOL, ())
    sides: dict[str, GraphProto] = {}
    for key in ("then_branch", "else_branch"):
        body = _Body(draft, value)
        end = body.chain(value.name)
        sides[key] = helper.make_graph(body.nodes, end, [], [_info(value, end)])
    _add(draft, "If", [condition], [value], **sides)


def loop(draft: Draft) -> None:
    """Loop: a carried value that ops change, for some iterations, perhaps until a condition.

    The collected tensor, if any, has one entry per iteration, whose number is known.
    """
    value = _pick(draft)
    if value is None:
        return
    count, stop = draft.draw(st.integers(0, 3)), draft.draw(st.sampled_from((None, None, 1, 2)))
    trips = draft.constant(np.array(count, np.int64))
    going = draft.constant(np.array(draft.draw(st.sampled_from((True, True, True, False)))))
    collects = stop is None and bool(draft.constants[going.name]) and draft.draw(st.booleans())
    i, c, carried, again = (draft.fresh(k) for k in ("i", "c", "a", "g"))
    body = _Body(draft, value)
    if stop is None:
        body.nodes.append(helper.make_node("Identity", [c], [again]))
    else:
        limit = draft.constant(np.array(stop, np.int64))
        body.nodes.append(helper.make_node("Less", [i, limit.name], [again]))
    end = body.chain(carried)
    made = draft.fresh("n")
    body.nodes.append(helper.make_node("Identity", [end], [made]))
    outputs, results = [_info(value, made)], [value]
    if collects:
        kept = draft.fresh("s")
        body.nodes.append(helper.make_node("Identity", [end], [kept]))
        outputs.append(_info(value, kept))
        results.append(Value("", value.type, (count, *value.shape), False, value.bound))
    graph = helper.make_graph(
        body.nodes,
        draft.fresh("body"),
        [
            helper.make_tensor_value_info(i, TensorProto.INT64, ()),
            helper.make_tensor_value_info(c, TensorProto.BOOL, ()),
            _info(value, carried),
        ],
        [helper.make_tensor_value_info(again, TensorProto.BOOL, ()), *outputs],
    )
    _add(draft, "Loop", [trips, going, value], results, body=graph)


def scan(draft: Draft) -> None:
    """Scan: a running maximum along the first dim, and every step of it."""
    value = draft.pick(
        lambda v: (
            v.is_float
            and v.type not in NARROW
            and v.rank >= 1
            and 0 not in v.shape
            and v.bound <= 100
        )
    )
    if value is None:
        return
    row = Value("", value.type, value.shape[1:], value.exact, value.bound)
    dtype = helper.tensor_dtype_to_np_dtype(value.type)
    start = draft.constant(np.full(row.shape, -1, dtype))
    state, part, largest, kept = (draft.fresh(k) for k in "sple")
    body = helper.make_graph(
        [
            helper.make_node("Max", [state, part], [largest]),
            helper.make_node("Neg", [largest], [kept]),
        ],
        draft.fresh("body"),
        [_info(row, state), _info(row, part)],
        [_info(row, largest), _info(row, kept)],
    )
    attributes = {"scan_input_directions": [draft.draw(st.integers(0, 1))]}
    _add(draft, "Scan", [start, value], [row, value], body=body, num_scan_inputs=1, **attributes)


def _add(
    draft: Draft, op: str, inputs: list[Value], results: list[Value], **attributes: object
) -> None:
    names = [draft.fresh("v") for _ in results]
    draft.nodes.append(helper.make_node(op, [v.name for v in inputs], names, **attributes))
    for name, like in zip(names, results, strict=True):
        draft.values.append(Value(name, like.type, like.shape, False, max(like.bound, 1.0)))


DRAWERS = (branch, loop, scan)
