"""Reduction: what is left fails, and nothing can go."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from xdsl.parser import Parser

from braid.analysis.structure.verification import verify_module
from braid.support.errors import BraidError
from braid.tools.reduction.command import Command, symptom_of
from braid.tools.reduction.minimize import minimize
from braid.tools.reduction.module_subset import removable, subset, unwrapped
from braid.tools.reduction.reduce import reduce_model
from braid.universe import make_context


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_minimize_finds_what_it_takes(case: tuple[int, set[int]]) -> None:
    count, needed = case
    runs: list[tuple[int, ...]] = []

    def fails(items: list[int]) -> bool:
        runs.append(tuple(items))
        return needed <= set(items)

    found = minimize(list(range(count)), fails)
    assert needed <= set(found)
    assert len(found) == max(len(needed), 1)
    assert found == sorted(found)
    assert len(runs) == len(set(runs))


LOOP = """
func.func @main(%x: tensor<4xf32>, %c: i1, %lo: index, %hi: index) -> tensor<4xf32> {
  %0 = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.for %i = %lo to %hi step %hi iter_args(%a = %0) -> (tensor<4xf32>) {
    %2 = scf.if %c -> (tensor<4xf32>) {
      %3 = braid.neg %a : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %3 : tensor<4xf32>
    } else {
      %4 = braid.add %a, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %4 : tensor<4xf32>
    }
    %5 = scf.index_switch %i -> tensor<4xf32>
    case 2 {
      %6 = braid.sqrt %2 : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %6 : tensor<4xf32>
    }
    default {
      scf.yield %2 : tensor<4xf32>
    }
    scf.yield %5 : tensor<4xf32>
  }
  func.return %1 : tensor<4xf32>
}
"""


@given(st.sets(st.integers(0, 10)))
def test_every_subset_of_a_module_is_valid(chosen: set[int]) -> None:
    module = Parser(make_context(), LOOP).parse_module()
    numbers = removable(module)
    smaller = subset(module, [n for i, n in enumerate(numbers) if i in chosen])
    verify_module(smaller)
    for other in unwrapped(smaller):
        verify_module(other)


def grep(pattern: str) -> Command:
    """Return a command that succeeds if the file has the pattern: the symptom is status 0."""
    return Command(f"grep -c {pattern} {{}}", 10)


def test_a_module_shrinks_to_the_op_that_matters(tmp_path: Path) -> None:
    path = tmp_path / "loop.mlir"
    path.write_text(LOOP, encoding="utf-8")
    for name in ("braid.add", "braid.sqrt"):
        command = grep(name)
        reduction = reduce_model(path, command, symptom_of(command, path, "1"), lambda runs: None)
        assert (reduction.before, reduction.after) == (7, 1)
        text = reduction.content.decode()
        assert name in text
        assert "scf" not in text


def test_an_onnx_model_shrinks_to_the_node_that_matters(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(9)]
    nodes[5].op_type = "Mul"
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1], np.ones(1, np.float32))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("v9", TensorProto.FLOAT, [4])],
        [weight],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path)
    command = grep("Mul")
    reduction = reduce_model(path, command, symptom_of(command, path, "1"), lambda runs: None)
    assert (reduction.before, reduction.after) == (9, 1)
    model = onnx.load_from_string(reduction.content)
    onnx.checker.check_model(model, full_check=True)
    assert [i.name for i in model.graph.input] == ["v5"]
    assert [o.name for o in model.graph.output] == ["v6"]


def test_a_command_that_succeeds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("module {}", encoding="utf-8")
    with pytest.raises(BraidError, match="nothing to reduce"):
        symptom_of(Command("true", 10), path, None)
    with pytest.raises(BraidError, match="cannot run"):
        symptom_of(Command("no-such-program-anywhere", 10), path, None)
    with pytest.raises(BraidError, match="does not match"):
        symptom_of(Command("false", 10), path, "words")
