"""Random nodes of `ai.onnx.ml`, each with inputs: what its schema and ONNX Runtime both take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from test.unit.frontends.onnx.conftest import Array, value_info
from test.unit.frontends.onnx.random_trees import (
    POST_TRANSFORMS,
    floats,
    pick,
    random_leaf_lists,
    random_node_lists,
    random_tree_ensemble,
    with_doubles,
)

ML = "ai.onnx.ml"
Random = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A node with inputs and as many outputs as are there."""

    op: str
    inputs: Mapping[str, Array]
    attributes: Mapping[str, Any]
    version: int = 1
    outputs: int = 1

    def model(self, *, open_rows: bool = False) -> ModelProto:
        """Return the model; with `open_rows`, the first dim of inputs is the open dim `n`."""
        names = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(
            self.op, list(self.inputs), names, name="node", domain=ML, **self.attributes
        )
        infos = [value_info(name, array) for name, array in self.inputs.items()]
        if open_rows:
            for info in infos:
                info.type.tensor_type.shape.dim[0].dim_param = "n"
        graph = helper.make_graph(
            [node], "g", infos, [helper.make_empty_tensor_value_info(name) for name in names]
        )
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(ML, self.version)]
        return helper.make_model(graph, opset_imports=versions, ir_version=9)


def features(
    random: Random, kinds: str = "f4 f8 i4 i8", rank: int = 2, rows: int | None = None
) -> Array:
    shape = [int(random.integers(1, 9)) if rows is None else rows, int(random.integers(1, 6))]
    x = 3 * random.standard_normal(shape[2 - rank :])
    return x.astype(pick(random, kinds.split()))


def any_rank(random: Random, kinds: str = "f4 f8 i4 i8") -> Array:
    return features(random, kinds, rank=int(random.integers(1, 3)))


def with_missing(random: Random, x: Array) -> Array:
    if x.dtype.kind == "f":
        x[random.random(x.shape) < 0.3] = int(random.integers(-2, 3))
        x[random.random(x.shape) < 0.15] = np.nan
    return x


def tree_regressor(random: Random) -> Case:
    x = with_missing(random, features(random, "f4 f8"))
    targets = int(random.integers(1, 4))
    nodes, leaves = random_node_lists(random, x.shape[1])
    lists, covers = random_leaf_lists(random, leaves, targets, "target")
    attributes = {
        **nodes,
        **lists,
        "n_targets": targets,
        "post_transform": pick(random, POST_TRANSFORMS),
        "aggregate_function": pick(random, ["SUM", "AVERAGE", "MIN", "MAX"]),
    }
    # ONNX Runtime adds no base value to a target that no leaf speaks of.
    if covers and random.random() < 0.5:
        attributes["base_values"] = floats(random, targets)
    version = pick(random, [1, 3])
    if x.dtype == np.float64:
        version, attributes = 3, with_doubles(attributes)
    return Case("TreeEnsembleRegressor", {"x": x}, attributes, version)


def tree_classifier(random: Random) -> Case:
    x = with_missing(random, features(random))
    classes = int(random.integers(2, 5))
    nodes, leaves = random_node_lists(random, x.shape[1])
    lists, covers = random_leaf_lists(random, leaves, classes, "class")
    if random.random() < 0.5:
        lists["class_weights"] = [abs(weight) for weight in lists["class_weights"]]
    is_single = len(set(lists["class_ids"])) == 1
    labels = [int(label) for label in random.permutation(50)[:classes] - 10]
    # Of two classes that both have weights ONNX Runtime gives numbers instead of labels.
    attributes = {
        **nodes,
        **lists,
        "classlabels_int64s": labels if classes > 2 or is_single else [0, 1],
        "post_transform": pick(random, POST_TRANSFORMS[:-1]),
    }
    if random.random() < 0.4 and (covers or is_single):
        attributes["base_values"] = floats(random, classes)
    version = pick(random, [1, 3])
    if x.dtype == np.float64:
        version, attributes = 3, with_doubles(attributes)
    return Case("TreeEnsembleClassifier", {"x": x}, attributes, version, outputs=2)


def tree_ensemble(random: Random) -> Case:
    x = with_missing(random, features(random, "f4 f8"))
    attributes = random_tree_ensemble(random, x.shape[1], x.dtype)
    # ONNX Runtime has the numbers of these two in another order than the standard.
    attributes["post_transform"] = pick(random, [0, 3, 4])
    return Case("TreeEnsemble", {"x": x}, attributes, version=5)


def linear_regressor(random: Random) -> Case:
    x, targets = any_rank(random, "f4"), int(random.integers(1, 4))
    attributes: dict[str, Any] = {
        "coefficients": floats(random, targets * x.shape[-1]),
        "targets": targets,
        "post_transform": pick(random, POST_TRANSFORMS),
    }
    if random.random() < 0.6:
        attributes["intercepts"] = floats(random, targets)
    return Case("LinearRegressor", {"x": x}, attributes)


def linear_classifier(random: Random) -> Case:
    x, scores = any_rank(random), int(random.integers(1, 5))
    labels = scores if scores > 1 else 2
    attributes = {
        "coefficients": floats(random, scores * x.shape[-1]),
        "intercepts": floats(random, scores),
        "classlabels_ints": [int(label) for label in random.permutation(20)[:labels]],
        "multi_class": int(random.integers(2)),
        "post_transform": pick(random, POST_TRANSFORMS[: 5 if scores > 1 else 4]),
    }
    return Case("LinearClassifier", {"x": x}, attributes, outputs=2)


def kernel(random: Random) -> dict[str, Any]:
    return {
        "kernel_type": pick(random, ["LINEAR", "POLY", "RBF", "SIGMOID"]),
        "kernel_params": [*np.abs(floats(random, 2)).tolist(), float(random.integers(1, 5))],
    }


def svm_regressor(random: Random) -> Case:
    x, vectors = features(random, "f4"), int(random.integers(0, 5))
    attributes = {
        **kernel(random),
        "rho": floats(random, 1),
        "coefficients": floats(random, vectors or x.shape[1]),
        "n_supports": vectors,
        "one_class": int(random.integers(2)),
    }
    if vectors:
        attributes["support_vectors"] = floats(random, vectors * x.shape[1])
    return Case("SVMRegressor", {"x": x}, attributes)


def svm_classifier(random: Random) -> Case:
    x, classes = features(random), int(random.integers(2, 5))
    pairs = classes * (classes - 1) // 2
    attributes = {
        **kernel(random),
        "classlabels_ints": [int(label) for label in random.permutation(20)[:classes]],
        "post_transform": pick(random, POST_TRANSFORMS[:-1]),
    }
    attributes["kernel_params"][0] *= 0.3
    if random.random() < 0.25:
        attributes |= {
            "kernel_type": "LINEAR",
            "coefficients": floats(random, classes * x.shape[1]),
            "rho": floats(random, 1),
        }
        return Case("SVMClassifier", {"x": x}, attributes, outputs=2)
    per_class = random.integers(1, 4, classes)
    vectors = int(per_class.sum())
    attributes |= {
        "vectors_per_class": per_class.tolist(),
        "coefficients": floats(random, (classes - 1) * vectors),
        "support_vectors": floats(random, vectors * x.shape[1]),
        "rho": floats(random, pairs),
    }
    if random.random() < 0.6:
        attributes |= {"prob_a": floats(random, pairs), "prob_b": floats(random, pairs)}
    return Case("SVMClassifier", {"x": x}, attributes, outputs=2)


def one_for_all_or_each(random: Random, x: Array) -> int:
    return x.shape[-1] if random.random() < 0.6 else 1


def scaler(random: Random) -> Case:
    x = any_rank(random)
    count = one_for_all_or_each(random, x)
    attributes = {"offset": floats(random, count), "scale": floats(random, count)}
    return Case("Scaler", {"x": x}, attributes)


def normalizer(random: Random) -> Case:
    x = any_rank(random)
    if random.random() < 0.2:
        x[...] = 0
    return Case("Normalizer", {"x": x}, {"norm": pick(random, ["MAX", "L1", "L2"])})


def binarizer(random: Random) -> Case:
    return Case("Binarizer", {"x": any_rank(random, "f4")}, {"threshold": floats(random, 1)[0]})


def imputer(random: Random) -> Case:
    x = features(random, "f4 i8")
    count = one_for_all_or_each(random, x)
    if x.dtype.kind == "i":
        return Case(
            "Imputer",
            {"x": x},
            {
                "imputed_value_int64s": random.integers(-9, 9, count).tolist(),
                "replaced_value_int64": int(random.integers(-2, 3)),
            },
        )
    old = pick(random, [float("nan"), 1.5])
    x[random.random(x.shape) < 0.4] = old
    attributes = {"imputed_value_floats": floats(random, count), "replaced_value_float": old}
    return Case("Imputer", {"x": x}, attributes)


def feature_vectorizer(random: Random) -> Case:
    rows, kind = int(random.integers(1, 5)), pick(random, ["f4", "f8", "i4", "i8"])
    inputs = {f"x{i}": features(random, kind, rows=rows) for i in range(random.integers(1, 4))}
    widths = [
        x.shape[1] if random.random() < 0.6 else int(random.integers(1, 7)) for x in inputs.values()
    ]
    return Case("FeatureVectorizer", inputs, {"inputdimensions": widths})


def array_feature_extractor(random: Random) -> Case:
    x = any_rank(random)
    places = random.integers(0, x.shape[-1], (1, int(random.integers(1, 5))))
    return Case("ArrayFeatureExtractor", {"x": x, "places": places}, {})


_LISTS = {"int64s": np.dtype(np.int64), "floats": np.dtype(np.float32)}


def label_encoder(random: Random) -> Case:
    kinds = pick(random, list(_LISTS)), pick(random, list(_LISTS))
    count, spread = int(random.integers(1, 60)), pick(random, [1, 100_003])
    keys, values = (
        (random.permutation(4 * count)[:count] * (spread if kind == "int64s" else 0.25)).astype(
            _LISTS[kind]
        )
        for kind in kinds
    )
    if kinds[0] == "floats" and random.random() < 0.4:
        keys[0] = np.nan
    shape = random.integers(1, 5, random.integers(1, 4))
    x = np.append(keys, 7).astype(keys.dtype)[random.integers(0, count + 1, shape)]
    version = int(random.integers(2, 5))
    if version == 4 and kinds[0] == kinds[1]:
        if kinds[0] == "floats":
            x, keys, values = (a.astype(np.float64) for a in (x, keys, values))
        named = {"keys": keys, "values": values, "default": values[:1]}
        tensors = {f"{n}_tensor": numpy_helper.from_array(a, n) for n, a in named.items()}
        return Case("LabelEncoder", {"x": x}, tensors, version)
    attributes: dict[str, Any] = {
        f"keys_{kinds[0]}": keys.tolist(),
        f"values_{kinds[1]}": values.tolist(),
    }
    if random.random() < 0.5:
        attributes["default_int64" if kinds[1] == "int64s" else "default_float"] = (
            -5 if kinds[1] == "int64s" else 0.5
        )
    return Case("LabelEncoder", {"x": x}, attributes, version)


def one_hot_encoder(random: Random) -> Case:
    shape = random.integers(1, 5, random.integers(1, 4))
    x = random.integers(0, 9, shape).astype(pick(random, ["i8", "f4", "f8"]))
    cats = random.permutation(9)[: random.integers(1, 9)].tolist()
    return Case("OneHotEncoder", {"x": x}, {"cats_int64s": cats, "zeros": 1})


CASES: Mapping[str, Callable[[Random], Case]] = {
    made.__name__: made
    for made in (
        array_feature_extractor,
        binarizer,
        feature_vectorizer,
        imputer,
        label_encoder,
        linear_classifier,
        linear_regressor,
        normalizer,
        one_hot_encoder,
        scaler,
        svm_classifier,
        svm_regressor,
        tree_classifier,
        tree_ensemble,
        tree_regressor,
    )
}
