"""Decision trees in rows per second, beside ONNX Runtime.

``python -m benchmarks.trees [--trees 100 --depth 8] --json FILE`` times a forest of full random
trees, as a regression and as three classes, at several numbers of rows; both run on one thread. A
call gets other rows than the one before it, so that no branch is known from the last call. Times
are the least of five medians, in turns; results must agree. The exit status is 1 where they do not.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper

import braid
from benchmarks.arguments import count
from benchmarks.command import Judged, run_command
from benchmarks.provenance import provenance

ROWS = (1, 10, 100, 1000)
FEATURES = 20
CLASSES = 3
TOLERANCE = 1e-4
_TURNS = 5
_SECONDS = 0.2
"""The seconds of each turn."""
_KINDS = ("regression", "classes")


@dataclass(frozen=True)
class Row:
    """The seconds of a call with `rows` rows."""

    kind: str
    rows: int
    onnxruntime: float
    braid: float
    error: float

    @property
    def ratio(self) -> float:
        """Return braid's time over ONNX Runtime's."""
        return self.braid / self.onnxruntime


def forest(kind: str, trees: int, depth: int) -> ModelProto:
    """Return a model of full trees with random splits; leaves have weights of every class."""
    random = np.random.default_rng(0)
    asking, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    own = np.arange(nodes)
    is_leaf = own >= asking
    tree = np.repeat(np.arange(trees), nodes)
    leaves = np.tile(own[is_leaf], trees)
    targets = CLASSES if kind == "classes" else 1
    prefix = "class" if kind == "classes" else "target"
    attributes: dict[str, Any] = {
        "nodes_treeids": tree,
        "nodes_nodeids": np.tile(own, trees),
        "nodes_featureids": random.integers(0, FEATURES, len(tree)),
        "nodes_values": random.standard_normal(len(tree)),
        "nodes_truenodeids": np.tile(np.where(is_leaf, 0, 2 * own + 1), trees),
        "nodes_falsenodeids": np.tile(np.where(is_leaf, 0, 2 * own + 2), trees),
        f"{prefix}_treeids": np.repeat(np.arange(trees), targets * is_leaf.sum()),
        f"{prefix}_nodeids": np.repeat(leaves, targets),
        f"{prefix}_ids": np.tile(np.arange(targets), len(leaves)),
        f"{prefix}_weights": random.random(targets * len(leaves)) / trees,
    }
    lists = {name: values.tolist() for name, values in attributes.items()}
    lists["nodes_modes"] = np.where(np.tile(is_leaf, trees), "LEAF", "BRANCH_LEQ").tolist()
    if kind == "classes":
        lists["classlabels_int64s"] = list(range(CLASSES))
    else:
        lists["n_targets"] = 1
    op = "TreeEnsembleClassifier" if kind == "classes" else "TreeEnsembleRegressor"
    outputs = ["label", "scores"] if kind == "classes" else ["y"]
    node = helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", **lists)
    graph = helper.make_graph(
        [node],
        "forest",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", FEATURES])],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def seconds_of(call: Callable[[Any], object], inputs: Sequence[Any]) -> float:
    """Return the median time of calls with successive inputs."""
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < 2 or time.perf_counter() < end:
        x = inputs[len(times) % len(inputs)]
        begin = time.perf_counter()
        call(x)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measured(kind: str, trees: int, depth: int) -> list[Row]:
    """Return the times of a forest at every number of rows."""
    proto, random = forest(kind, trees, depth), np.random.default_rng(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    model = braid.compile(proto, threads=1)
    found: list[Row] = []
    for rows in ROWS:
        inputs = [
            random.standard_normal((rows, FEATURES)).astype(np.float32)
            for _ in range(max(10, 1000 // rows))
        ]
        calls = [lambda x: session.run(None, {"x": x}), model]
        pairs = zip(calls[0](inputs[0]), model.run([inputs[0]]), strict=True)
        error = max(float(np.abs(one - other).max()) for one, other in pairs)
        turns = [[seconds_of(call, inputs) for call in calls] for _ in range(_TURNS)]
        theirs, ours = (min(column) for column in zip(*turns, strict=True))
        row = Row(kind, rows, theirs, ours, error)
        print(
            f"{kind}, {rows} rows: {1e6 * ours:.0f} µs, ONNX Runtime {1e6 * theirs:.0f} µs, "
            f"ratio {row.ratio:.2f}",
            flush=True,
        )
        found.append(row)
    return found


def main(*, trees: Annotated[int, count] = 100, depth: Annotated[int, count] = 8) -> object:
    """Measure, write the rows, and return the exit status."""
    rows = [row for kind in _KINDS for row in measured(kind, trees, depth)]
    content = {
        **provenance(),
        "onnxruntime": onnxruntime.__version__,
        "trees": trees,
        "depth": depth,
        "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
    }
    return Judged(content, not any(row.error > TOLERANCE for row in rows))


if __name__ == "__main__":
    run_command(main)
