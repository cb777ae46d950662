"""ONNX Runtime's own ops compiled for the CPU: one node of each, and of some with open dims."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import braid
from test.unit.frontends.onnx.microsoft import (
    test_activations,
    test_attention,
    test_fused,
    test_group_query,
    test_quantized,
    test_quantized_lstm,
)
from test.unit.frontends.onnx.microsoft.harness import (
    Case,
    Generator,
    arrays_of,
    compare,
    model_of,
    onnx_runtime,
)

GENERATORS: Mapping[str, Generator] = {
    **test_activations.GENERATORS,
    **test_attention.GENERATORS,
    **test_fused.GENERATORS,
    **test_group_query.GENERATORS,
    **test_quantized.GENERATORS,
    "DynamicQuantizeLSTM": test_quantized_lstm.lstm,
}
SEED = 1000
BROADCAST = {"QLinearAdd", "QLinearMul", "QLinearWhere"}
DOMAIN = "com.microsoft"
SLOW = {
    *("Attention", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "GatherBlockQuantized"),
    *("GroupQueryAttention", "MatMulIntegerToFloat", "MultiHeadAttention", "QAttention"),
}


def check_compiled(op: str, seed: int, is_open: bool) -> None:
    case = GENERATORS[op](np.random.default_rng([seed, len(op)]))
    expected = onnx_runtime(model_of(op, case, DOMAIN), arrays_of(case))
    found = braid.compile(model_of(op, case, DOMAIN, is_open))(**arrays_of(case))
    results = found if isinstance(found, tuple | list) else [found]
    for result, wanted in zip(results, expected, strict=True):
        compare(np.asarray(result), np.asarray(wanted), case)


@pytest.mark.parametrize(
    "op", [pytest.param(op, marks=[pytest.mark.slow] if op in SLOW else []) for op in GENERATORS]
)
def test_a_node(op: str) -> None:
    check_compiled(op, SEED, is_open=False)


@pytest.mark.parametrize("op", ["BiasGelu", "QLinearConcat", "QuickGelu", "TransposeMatMul"])
def test_a_node_with_open_dims(op: str) -> None:
    check_compiled(op, SEED + 1, is_open=True)


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(set(GENERATORS) - BROADCAST))
def test_other_nodes_with_open_dims(op: str) -> None:
    """Not of sums whose extents of 1 have names: compiled code wants them equal."""
    check_compiled(op, SEED + 3, is_open=True)


@pytest.mark.parametrize(("rows", "is_small"), [(1, True), (8, True), (9, False)])
def test_weights_of_4_bits_stay_bytes_for_few_rows(
    rows: int, is_small: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    count = 512
    weights = test_fused.weights_of_few_bits(rng, count, count, 32, 4)
    attributes = {"N": count, "K": count, "block_size": 32}
    x = rng.standard_normal((rows, count)).astype(np.float32)
    case = Case([x, *weights[:2]], attributes)
    compiled = braid.compile(model_of("MatMulNBits", case, DOMAIN))
    compiled.save(tmp_path / "model.braid")
    size = (tmp_path / "model.braid").stat().st_size
    assert (size < 2 * count * count) == is_small
    (expected,) = onnx_runtime(model_of("MatMulNBits", case, DOMAIN), arrays_of(case))
    compare(np.asarray(compiled(x)), expected, case)
