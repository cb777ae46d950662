"""Every op of ONNX Runtime's domain and of `ai.onnx.ml` has random nodes beside ONNX Runtime.

The table of `docs/conformance.md` says which test has them.
"""

import re
from pathlib import Path

import pytest

from braid.frontends.onnx.building.registry import registered_ops
from braid.frontends.onnx.importers import find_importer
from test.unit.frontends.onnx import ml_cases, test_random_text_ops
from test.unit.frontends.onnx.microsoft import (
    test_activations,
    test_attention,
    test_fused,
    test_group_query,
    test_quantized,
)

ROOT = Path(__file__).parents[4]
OF_FILES = {
    "microsoft/test_activations.py": {
        *test_activations.GENERATORS, "BiasSplitGelu", "SimplifiedLayerNormalization"
    },
    "microsoft/test_attention.py": {*test_attention.GENERATORS},
    "microsoft/test_fused.py": {*test_fused.GENERATORS, "NhwcConv"},
    "microsoft/test_group_query.py": {*test_group_query.GENERATORS},
    "microsoft/test_quantized.py": {*test_quantized.GENERATORS},
    "microsoft/test_quantized_lstm.py": {"DynamicQuantizeLSTM"},
    "test_ml_ops.py": {
        {"svm_classifier": "SVMClassifier", "svm_regressor": "SVMRegressor",
         "tree_classifier": "TreeEnsembleClassifier", "tree_regressor": "TreeEnsembleRegressor"}
        .get(name, name.title().replace("_", ""))
        for name in ml_cases.CASES
    },
    "test_random_text_ops.py": {*test_random_text_ops.GENERATORS},
    "test_recurrent.py": {"GRU", "LSTM", "RNN"},
}  # fmt: skip
"""The ops of which a test has at least 20 random nodes, by the files of the tests."""


@pytest.mark.parametrize(
    ("domain", "some_op"), [("com.microsoft", "BiasGelu"), ("ai.onnx.ml", "Scaler")]
)
def test_every_op_has_random_nodes(domain: str, some_op: str) -> None:
    assert find_importer(some_op, 1, domain) is not None  # registers those of the domain
    known = {op for own, op in registered_ops() if own == domain}
    assert known <= set().union(*OF_FILES.values())


def test_the_documentation_has_the_table() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text()
    rows = re.findall(r"^\| (.*) \| `(.*\.py)` \|$", page, re.MULTILINE)
    assert {file: set(re.findall(r"\w+", ops)) for ops, file in rows} == OF_FILES
    for file in OF_FILES:
        assert (Path(__file__).parent / file).exists()
