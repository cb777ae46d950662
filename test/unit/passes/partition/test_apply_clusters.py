"""Splitting a model by hand changes nothing, whatever passes run before clusters are functions."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from braid.analysis.interpreter import interpret
from braid.analysis.structure.clusters import complete_clusters, has_clusters, verify_clusters
from braid.analysis.structure.verification import InvalidIRError, verify_module
from braid.dialects.braid.attribute_names import CLUSTER, TARGET
from braid.dialects.braid.attributes import TargetAttr
from braid.dialects.braid.clusters import (
    Placement,
    device_name,
    placement_of,
    union_placements,
)
from braid.dialects.braid.launch import LaunchOp
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context
from test.unit.passes.partition.random_clusters import split_at_random
from test.unit.passes.random_graphs import programs

THREE_DEVICES = Path(__file__).parent / "three_devices.toml"
PIPELINES = [
    "apply-clusters",
    "simplify,apply-clusters",
    "simplify,fold-scale-into-weights,expand-padding,simplify,hoist-parameter-expressions,"
    "select-fusion,apply-fusion,fuse-shuffles,hoist-views,select-layouts,apply-layouts,"
    "hoist-parameter-expressions,group-upstream-ops,apply-clusters",
]


@pytest.mark.parametrize("pipeline", PIPELINES)
@settings(max_examples=8, deadline=None)
@given(program=programs(), seed=st.integers(0, 1 << 30))
def test_the_meaning_stays(
    pipeline: str, program: tuple[str, dict[str, np.ndarray]], seed: int
) -> None:
    text, parameters = program
    context = make_context()
    module = parse_mlir(context, text, "p.mlir").module
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    (expected,) = interpret(module, [x], parameters=parameters)
    split_at_random(module, ["cpu:0", "npu:0", "gpu:1"], Random(seed))
    module.attributes[TARGET] = TargetAttr.of(str(THREE_DEVICES), {})
    run_pipeline(context, module, pipeline)
    verify_module(module)
    assert not has_clusters(module)
    assert not any(CLUSTER in op.attributes for op in module.walk())
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    launched = {op.callee.string_value() for op in module.walk() if isinstance(op, LaunchOp)}
    of_devices = {name for name, function in functions.items() if device_name(function)}
    assert launched == of_devices
    (actual,) = interpret(module, [x], parameters=parameters)
    tolerance = 1e-4 * max(float(np.abs(expected).max()), 1e-6)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


DIAMOND = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.exp %x {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %n = braid.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.exp %n {braid.cluster = 1 : i64, braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.add %n, %b {braid.cluster = 2 : i64, braid.device = "gpu:0"}
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = braid.neg %c : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}"""  # noqa: E501


def test_an_inserted_op_joins_the_first_cluster_that_reads_it() -> None:
    module = parse_mlir(make_context(), DIAMOND, "d.mlir").module
    complete_clusters(module)
    verify_clusters(module)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    placed = [p for op in function.body.block.ops if (p := placement_of(op)) is not None]
    # With the add, which reads it too, it would make the clusters 1 and 2 read each other.
    assert placed == [
        Placement(0, "cpu:0"),
        Placement(1, "npu:0"),
        Placement(1, "npu:0"),
        Placement(2, "gpu:0"),
        Placement(2, "gpu:0"),
    ]


def test_inserted_ops_between_two_of_one_cluster_join_it() -> None:
    """Also where a cluster behind it reads one of them."""
    place = 'braid.cluster = {} : i64, braid.device = "cpu:0"'
    ops = [
        ("a", "%x", place.format(3)),
        ("b", "%a", ""),
        ("c", "%b", ""),
        ("d", "%c", place.format(3)),
        ("e", "%b", place.format(1)),
        ("f", "%e", place.format(2)),
    ]
    lines = [f"%{name} = braid.neg {read} {{{at}}} : (!t) -> !t" for name, read, at in ops]
    body = "\n".join(lines)
    head = "!t = tensor<4xf32>\nfunc.func @main(%x: !t) -> (!t, !t) {"
    text = f"{head}\n{body}\nreturn %d, %f : !t, !t\n}}"
    module = parse_mlir(make_context(), text, "b.mlir").module
    complete_clusters(module)
    verify_clusters(module)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    placements = [placement_of(op) for op in function.body.block.ops][:-1]
    assert [p.cluster for p in placements if p] == [3, 3, 3, 3, 1, 2]


def test_ids_that_are_not_complete_are_refused() -> None:
    module = parse_mlir(make_context(), DIAMOND, "d.mlir").module
    with pytest.raises(InvalidIRError, match=r"'braid\.neg' op has no braid\.cluster"):
        verify_clusters(module)


def test_an_op_cannot_replace_ops_of_two_clusters() -> None:
    module = parse_mlir(make_context(), DIAMOND, "d.mlir").module
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    first, inserted, second, *_ = function.body.block.ops
    with pytest.raises(ValueError, match="0 on cpu:0 and 1 on npu:0"):
        union_placements(inserted, first, second)
    union_placements(inserted, second)
    assert placement_of(inserted) == placement_of(second)
    with pytest.raises(ValueError, match="0 on cpu:0 and 1 on npu:0"):
        union_placements(inserted, first)  # as where `first` is folded to `inserted`
