"""Models of scikit-learn, XGBoost and LightGBM, as their converters write them."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnxruntime import InferenceSession, SessionOptions

import braid

pytestmark = pytest.mark.slow

ROWS, FEATURES = 300, 8
Make = Callable[[], ModelProto]


@cache
def data() -> tuple[Any, Any, Any]:
    """Features, three classes, and a target."""
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.make_classification(
        ROWS, FEATURES, n_informative=5, n_classes=3, random_state=0
    )
    x = x.astype(np.float32)
    return x, y, 2 * x[:, 0] + x[:, 1] ** 2


def of_sklearn(name: str, target: str, **options: Any) -> Make:
    """Fit a model of scikit-learn: of all classes, of two, of text, of a number, or of none."""

    def make() -> ModelProto:
        skl2onnx = pytest.importorskip("skl2onnx")
        x, y, number = data()
        targets = {
            "classes": y,
            "two": (y > 0).astype(int),
            "texts": np.array(["a", "b", "c"])[y],
            "number": number,
        }
        module, _, kind = name.rpartition(".")
        model = getattr(pytest.importorskip(f"sklearn.{module}"), kind)(**options)
        model.fit(x, *([targets[target]] if target in targets else []))
        return skl2onnx.to_onnx(model, x[:1], target_opset={"": 18, "ai.onnx.ml": 3})

    return make


def of_boosting(package: str, kind: str, target: str, **options: Any) -> Make:
    """Fit a model of XGBoost or LightGBM."""

    def make() -> ModelProto:
        tools = pytest.importorskip("onnxmltools")
        module = pytest.importorskip(package)
        x, y, number = data()
        targets = {"classes": y, "two": (y > 0).astype(int), "number": number}
        model = getattr(module, kind)(n_estimators=20, **options).fit(x, targets[target])
        types = tools.convert.common.data_types
        convert = getattr(tools, f"convert_{package}")
        return convert(model, initial_types=[("x", types.FloatTensorType([None, FEATURES]))])

    return make


_SEED = {"random_state": 0}
MODELS: Mapping[str, Make] = {
    "logistic": of_sklearn("linear_model.LogisticRegression", "texts"),
    "logistic of two": of_sklearn("linear_model.LogisticRegression", "two"),
    "ridge": of_sklearn("linear_model.Ridge", "number"),
    "linear svc": of_sklearn("svm.LinearSVC", "classes"),
    "svc": of_sklearn("svm.SVC", "texts", probability=True, **_SEED),
    "svc of two": of_sklearn("svm.SVC", "two", probability=True, **_SEED),
    "svc decisions": of_sklearn("svm.SVC", "classes", kernel="poly"),
    "svr": of_sklearn("svm.SVR", "number"),
    "one-class svm": of_sklearn("svm.OneClassSVM", ""),
    "tree": of_sklearn("tree.DecisionTreeClassifier", "texts", **_SEED),
    "forest": of_sklearn("ensemble.RandomForestClassifier", "texts", n_estimators=20, **_SEED),
    "forest of two": of_sklearn("ensemble.RandomForestClassifier", "two", **_SEED),
    "forest regressor": of_sklearn("ensemble.RandomForestRegressor", "number", **_SEED),
    "boosting": of_sklearn("ensemble.GradientBoostingClassifier", "classes", **_SEED),
    "boosting of two": of_sklearn("ensemble.GradientBoostingClassifier", "two", **_SEED),
    "histograms": of_sklearn("ensemble.HistGradientBoostingClassifier", "classes", **_SEED),
    "isolation forest": of_sklearn("ensemble.IsolationForest", "", n_estimators=10, **_SEED),
    "ada boost": of_sklearn("ensemble.AdaBoostClassifier", "classes", n_estimators=10, **_SEED),
    "neighbors": of_sklearn("neighbors.KNeighborsClassifier", "classes"),
    "perceptron": of_sklearn("neural_network.MLPClassifier", "texts", max_iter=50, **_SEED),
    "bayes": of_sklearn("naive_bayes.GaussianNB", "texts"),
    "scaler": of_sklearn("preprocessing.StandardScaler", ""),
    "normalizer": of_sklearn("preprocessing.Normalizer", ""),
    "bins": of_sklearn("preprocessing.KBinsDiscretizer", "", n_bins=4, encode="onehot-dense"),
    "xgboost": of_boosting("xgboost", "XGBClassifier", "classes"),
    "xgboost of two": of_boosting("xgboost", "XGBClassifier", "two"),
    "xgboost regressor": of_boosting("xgboost", "XGBRegressor", "number"),
    "lightgbm": of_boosting("lightgbm", "LGBMClassifier", "classes", verbose=-1),
    "lightgbm of two": of_boosting("lightgbm", "LGBMClassifier", "two", verbose=-1),
    "lightgbm regressor": of_boosting("lightgbm", "LGBMRegressor", "number", verbose=-1),
}


def assert_equal(found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert [list(row) for row in found] == [list(row) for row in expected]
        for row, wanted in zip(found, expected, strict=True):
            assert row == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    elif expected.dtype == object:
        assert found.tolist() == expected.tolist()
    else:
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    proto = MODELS[name]()
    feed = {proto.graph.input[0].name: data()[0]}
    options = SessionOptions()
    options.intra_op_num_threads = 1  # with more, the order of sums is another
    expected = InferenceSession(proto.SerializeToString(), options).run(None, feed)
    model = braid.compile(proto)
    for rows in (ROWS, 1, 77):
        found = model.run([feed[proto.graph.input[0].name][:rows]])
        for result, wanted in zip(found, expected, strict=True):
            assert_equal(result, wanted[:rows])
