"""`Attention`, `QAttention` and `MultiHeadAttention`: random nodes beside ONNX Runtime."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from test.unit.frontends.onnx.microsoft.harness import (
    QUICK,
    Array,
    Case,
    Fixed,
    Generator,
    Rng,
    arrays_of,
    check,
    check_many,
    check_random,
    floats,
    maybe,
    model_of,
    onnx_runtime,
    quick_cases,
    refusal,
)

Names = dict[int, Sequence[str | int]]


def dims(rng: Rng) -> tuple[int, int, int, int, int]:
    """Batch, length, past, heads, and the size of a head."""
    batch, length, past, heads, size = (int(n) for n in rng.integers(1, 5, 5))
    return batch, length, past if rng.random() < 0.5 else 0, heads, size


def mask_of(rng: Rng, batch: int, length: int, total: int) -> tuple[Array | None, Sequence[Any]]:
    """Return a mask and the names of its dims; no row hides all keys except later ones."""
    form = rng.integers(0, 5)
    if form == 0:
        return rng.integers(1, total + 1, batch).astype(np.int32), ["b"]
    if form == 1:
        mask = (rng.random((batch, total)) < 0.7).astype(np.int32)
        mask[:, 0] = 1
        return mask, ["b", "t"]
    if form == 2:
        mask = (rng.random((batch, length, total)) < 0.7).astype(np.int32)
        mask[:, :, 0] = 1
        return mask, ["b", "s", "t"]
    return None, []


def attributes_of(rng: Rng, heads: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {"num_heads": heads}
    if rng.random() < 0.4:
        attributes["unidirectional"] = 1
    if rng.random() < 0.3:
        attributes["scale"] = float(rng.uniform(0.1, 1))
    if rng.random() < 0.3:
        attributes["mask_filter_value"] = -5000.0
    return attributes


def bias_of(
    rng: Rng, batch: int, heads: int, length: int, total: int
) -> tuple[Array | None, Sequence[Any]]:
    if rng.random() < 0.6:
        return None, []
    outer, inner = (n if rng.random() < 0.5 else 1 for n in (batch, heads))
    shape = ["b" if outer == batch and outer > 1 else outer, inner, "s", "t"]
    return floats(rng, outer, inner, length, total), shape


def attention(rng: Rng) -> Case:
    batch, length, past, heads, size = dims(rng)
    columns, inputs, total = heads * size, int(rng.integers(1, 9)), past + length
    values = heads * int(rng.integers(1, 5)) if not past and rng.random() < 0.4 else columns
    mask, mask_names = mask_of(rng, batch, length, total)
    # ONNX Runtime takes no bias beside a past.
    bias, bias_names = (None, []) if past else bias_of(rng, batch, heads, length, total)
    attributes = attributes_of(rng, heads)
    if values != columns:
        attributes["qkv_hidden_sizes"] = [columns, columns, values]
    if rng.random() < 0.3:
        attributes["do_rotary"] = 0
    state = floats(rng, 2, batch, heads, past, size) if past else None
    names: Names = {0: ["b", "s", inputs], 3: mask_names, 5: bias_names}
    names[4] = [2, "b", heads, "p", size]
    return Case(
        [
            floats(rng, batch, length, inputs),
            Fixed(floats(rng, inputs, 2 * columns + values)),
            Fixed(floats(rng, 2 * columns + values)),
            *(mask, state, bias),
        ],
        attributes,
        (0, 1) if state is not None or (values == columns and rng.random() < 0.3) else (0,),
        tolerance=1e-4,
        names=names,
    )


def quantized_attention(rng: Rng) -> Case:
    batch, length, past, heads, size = dims(rng)
    columns, inputs, total = heads * size, int(rng.integers(1, 9)), past + length
    mask, mask_names = mask_of(rng, batch, length, total)
    kind = rng.choice([np.uint8, np.int8])
    least = 0 if kind == np.uint8 else -63
    per_column = rng.random() < 0.4
    count = [3 * columns] if per_column else []
    zeros = rng.integers(least, least + 127, count).astype(kind)
    state = floats(rng, 2, batch, heads, past, size) if past else None
    return Case(
        [
            rng.integers(0, 256, (batch, length, inputs)).astype(np.uint8),
            Fixed(rng.integers(least, least + 127, (inputs, 3 * columns)).astype(kind)),
            Fixed(floats(rng, 3 * columns)),
            Fixed(np.array(rng.uniform(0.01, 0.02), np.float32)),
            Fixed(rng.uniform(0.01, 0.02, count).astype(np.float32)),
            mask,
            Fixed(np.array(rng.integers(0, 256), np.uint8)),
            Fixed(zeros),
            state,
        ],
        attributes_of(rng, heads),
        (0, 1) if state is not None else (0,),
        tolerance=1e-4,
        names={0: ["b", "s", inputs], 5: mask_names, 8: [2, "b", heads, "p", size]},
    )


def multi_head(rng: Rng) -> Case:
    batch, length, past, heads, size = dims(rng)
    keys = length if rng.random() < 0.5 else int(rng.integers(1, 6))
    is_split = not past and rng.random() < 0.3
    values = int(rng.integers(1, 5)) if not (past or is_split) and rng.random() < 0.4 else size
    total = past + keys
    attributes = attributes_of(rng, heads)
    if is_split:
        key, value = floats(rng, batch, heads, keys, size), floats(rng, batch, heads, keys, values)
    else:
        key, value = (
            floats(rng, batch, keys, heads * size),
            floats(rng, batch, keys, heads * values),
        )
    columns = heads * (2 * size + values)
    mask, mask_names = mask_of(rng, batch, length, total)
    bias, bias_names = bias_of(rng, batch, heads, length, total)
    state = [floats(rng, batch, heads, past, size) for _ in range(2)] if past else [None, None]
    names: Names = {0: ["b", "s", heads * size], 4: mask_names, 5: bias_names}
    for index, columns_of in ((1, size), (2, values)):
        names[index] = ["b", heads, "l", columns_of] if is_split else ["b", "l", heads * columns_of]
        names[5 + index] = ["b", heads, "p", columns_of]
    return Case(
        [
            *(floats(rng, batch, length, heads * size), key, value),
            None if is_split else maybe(rng, Fixed(floats(rng, columns))),
            *(mask, bias, *state),
        ],
        attributes,
        (0, 1, 2) if past or rng.random() < 0.3 else (0,),
        tolerance=1e-4,
        names=names,
    )


GENERATORS: dict[str, Generator] = {
    "Attention": attention,
    "MultiHeadAttention": multi_head,
    "QAttention": quantized_attention,
}


@quick_cases(GENERATORS)
def test_random_nodes(op: str, seed: int) -> None:
    check_random(op, GENERATORS[op], seed)


@pytest.mark.slow
@pytest.mark.parametrize("op", GENERATORS)
def test_many_random_nodes(op: str) -> None:
    check_many(op, GENERATORS[op])


@pytest.mark.parametrize("seed", range(QUICK))
def test_packed_heads(seed: int) -> None:
    """ONNX Runtime takes them on GPUs only: the result is that of the parts."""
    rng = np.random.default_rng(seed)
    batch, length, _, heads, size = dims(rng)
    parts = [floats(rng, batch, length, heads, size) for _ in range(3)]
    rows = [part.reshape(batch, length, heads * size) for part in parts]
    whole = Case(rows, {"num_heads": heads})
    expected = onnx_runtime(
        model_of("MultiHeadAttention", whole, "com.microsoft"), arrays_of(whole)
    )
    for operands in ([np.stack(parts, 3)], [rows[0], np.stack(parts[1:], 3)]):
        check("MultiHeadAttention", Case(operands, {"num_heads": heads}), expected=expected)


def case(**attributes: Any) -> Case:
    ones = np.ones((1, 2, 4), np.float32)
    return Case([ones, np.ones((4, 12), np.float32), np.ones(12, np.float32)], attributes)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"num_heads": 2, "do_rotary": 1}, "attribute 'do_rotary' is not 0"),
        ({"num_heads": 2, "past_present_share_buffer": 1}, "'past_present_share_buffer' is not 0"),
        ({"num_heads": 0}, "attribute 'num_heads' is 0, expected at least 1"),
        ({"num_heads": 3}, "4 columns are not divisible by 3 heads"),
        ({"num_heads": 2, "qkv_hidden_sizes": [4, 2, 6]}, "attribute 'qkv_hidden_sizes' is"),
        ({"num_heads": 2, "masked": 1}, "ONNX Runtime has no attribute 'masked'"),
        ({}, "attribute 'num_heads' is missing"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    refusal("Attention", case(**attributes), message)
