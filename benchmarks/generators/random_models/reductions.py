"""Drawing reductions, normalizations and what orders elements."""

from math import prod

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto, helper

from benchmarks.generators.random_models.draft import Draft, Value

SUMS = ("ReduceSum", "ReduceMean", "ReduceL1")
SQUARES = ("ReduceL2", "ReduceSumSquare")
LEAST_AND_LARGEST = ("ReduceMax", "ReduceMin")


def _float(draft: Draft, least_rank: int = 1) -> Value | None:
    return draft.pick(
        lambda v: v.is_float and v.rank >= least_rank and v.bound <= 100 and prod(v.shape) > 0
    )


def reduce(draft: Draft) -> None:
    if value := _float(draft):
        op = draft.draw(st.sampled_from((*SUMS, *SQUARES, *LEAST_AND_LARGEST, "ReduceLogSumExp")))
        every = range(-value.rank, value.rank)
        axes = draft.draw(st.lists(st.sampled_from(every), unique_by=lambda a: a % value.rank))
        inputs = [value, draft.integers(*axes)] if axes else [value]
        attributes = {"keepdims": draft.draw(st.integers(0, 1))}
        if not axes:
            attributes["noop_with_empty_axes"] = 0
        count = prod(value.shape)
        exact = value.exact and op in LEAST_AND_LARGEST
        bound = value.bound**2 * count if op in SQUARES else value.bound * count + 10
        draft.add(op, inputs, exact=exact, bound=bound, **attributes)


def arg_reduce(draft: Draft) -> None:
    value = draft.pick(lambda v: v.exact and v.is_float and v.rank >= 1 and prod(v.shape) > 0)
    if value:
        draft.add(
            draft.draw(st.sampled_from(("ArgMax", "ArgMin"))),
            [value],
            axis=draft.draw(st.integers(-value.rank, value.rank - 1)),
            keepdims=draft.draw(st.integers(0, 1)),
            select_last_index=draft.draw(st.integers(0, 1)),
            exact=True,
            bound=max(value.shape),
        )


def softmax(draft: Draft) -> None:
    if value := _float(draft):
        op = draft.draw(st.sampled_from(("Softmax", "LogSoftmax")))
        axis = draft.draw(st.integers(-value.rank, value.rank - 1))
        draft.add(op, [value], axis=axis, bound=1 if op == "Softmax" else 2 * value.bound + 20)


def layer_normalization(draft: Draft) -> None:
    value = draft.pick(lambda v: v.exact and v.is_float and v.rank >= 1 and prod(v.shape) > 0)
    if value:
        axis = draft.draw(st.integers(0, value.rank - 1))
        scale, bias = (draft.weight(value.type, value.shape[axis:]) for _ in range(2))
        draft.add("LayerNormalization", [value, scale, bias], axis=axis, epsilon=0.125, bound=100)


def channel_normalization(draft: Draft) -> None:
    value = draft.pick(lambda v: v.type == TensorProto.FLOAT and v.rank >= 3 and v.bound <= 100)
    if value is None or prod(value.shape) == 0:
        return
    channels = (value.shape[1],)
    scale, bias, mean = (draft.weight(value.type, channels) for _ in range(3))
    op = draft.draw(st.sampled_from(("BatchNormalization", "InstanceNormalization", "LRN")))
    if op == "LRN":
        size = draft.draw(st.sampled_from((1, 3, 5)))
        draft.add(op, [value], size=size, alpha=0.25, beta=0.75, bias=1.0, bound=value.bound)
    elif op == "InstanceNormalization":
        draft.add(op, [value, scale, bias], epsilon=0.125, bound=100)
    else:
        variance = draft.constant(np.full(channels, 0.75, np.float32))
        inputs = [value, scale, bias, mean, variance]
        draft.add(op, inputs, epsilon=0.125, bound=20 * value.bound + 20)


def lp_normalization(draft: Draft) -> None:
    if (value := _float(draft)) and value.exact:
        axis = draft.draw(st.integers(-value.rank, value.rank - 1))
        draft.add("LpNormalization", [value], axis=axis, p=draft.draw(st.sampled_from((1, 2))))


def top_k(draft: Draft) -> None:
    value = draft.pick(lambda v: v.exact and v.is_float and v.rank >= 1 and prod(v.shape) > 0)
    if value:
        axis = draft.draw(st.integers(-value.rank, value.rank - 1))
        k = draft.integers(draft.draw(st.integers(1, value.shape[axis])))
        largest = draft.draw(st.integers(0, 1))
        bound = max(value.bound, *value.shape)
        draft.add(
            "TopK", [value, k], outputs=2, axis=axis, largest=largest, exact=True, bound=bound
        )


def cumulative_sum(draft: Draft) -> None:
    if value := _float(draft):
        axis = draft.constant(np.array(draft.draw(st.integers(0, value.rank - 1)), np.int64))
        flags = {name: draft.draw(st.integers(0, 1)) for name in ("exclusive", "reverse")}
        draft.add("CumSum", [value, axis], bound=value.bound * prod(value.shape), **flags)


def quantize(draft: Draft) -> None:
    value = draft.pick(lambda v: v.type == TensorProto.FLOAT and v.exact and v.bound <= 30)
    if value:
        scale = draft.constant(np.array(0.25, np.float32))
        dtype = helper.tensor_dtype_to_np_dtype(
            draft.draw(st.sampled_from((TensorProto.UINT8, TensorProto.INT8)))
        )
        zero = draft.constant(np.array(3, dtype))
        made = draft.add("QuantizeLinear", [value, scale, zero], exact=True, bound=255)
        if made:
            draft.add("DequantizeLinear", [made[0], scale, zero], exact=True, bound=64)


DRAWERS = (
    reduce, reduce, arg_reduce, softmax, layer_normalization, channel_normalization,
    lp_normalization, top_k, cumulative_sum, quantize,
)  # fmt: skip
