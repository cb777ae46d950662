"""The benchmark of GPUs in dry mode: what is right and what is not."""

from dataclasses import replace

import numpy as np

from benchmarks.gpu import run_case
from benchmarks.gpu_cases import cases


def test_a_case_is_right_or_wrong() -> None:
    case = next(one for one in cases(small=True) if one.kind == "softmax")
    good = run_case(case, "gpu-emulated", None, 1, peers=False)
    assert good.right and good.seconds is not None and good.rate.endswith("GB/s")
    other = replace(case, expected=lambda inputs, rows: np.zeros((len(rows), 96)))
    bad = run_case(other, "gpu-emulated", None, 1, peers=False)
    assert not bad.right and bad.note == "allowed 1e-05"
    broken = run_case(replace(case, text="func.func @main("), "gpu-emulated", None, 1, peers=False)
    assert not broken.right and "error" in broken.note


def test_the_list_is_complete() -> None:
    found = list(cases(small=False))
    assert {case.kind for case in found} == {
        *("product", "softmax", "layer_norm", "tanh", "conv", "model", "attention")
    }
    products = [case for case in found if case.kind == "product"]
    assert len(products) >= 32 and {case.element for case in products} == {
        "bf16",
        "f16",
        "i8",
        "f32",
    }


def test_attention_of_the_benchmark() -> None:
    case = next(one for one in cases(small=True) if one.kind == "attention")
    outcome = run_case(case, "gpu-emulated", None, 1, peers=False)
    assert outcome.right and outcome.rate.endswith("TFLOP/s"), outcome.note
