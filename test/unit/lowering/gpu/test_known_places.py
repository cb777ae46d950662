"""Places that tables hold as maps: which are lines or steps, and what may be joined."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.parser import Parser

from braid.lowering.gpu.fallback import known_places
from braid.lowering.gpu.fallback.known_places import known_places_as_maps
from braid.universe import make_context

TEXT = """
module {
  "memref.global"() <{constant, initial_value = dense<[TABLE]> : tensor<8xi64>, sym_name = "places",
    sym_visibility = "private", type = memref<8xi64>}> : () -> ()
  func.func @f(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>, %b: index, %e: index) {
    %zero = arith.constant 0.0 : f32
    %table = memref.get_global @places : memref<8xi64>
    %own = memref.alloc() : memref<8xf32>
    %moved = memref.alloc() : memref<8xf32>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
        iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%own : memref<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
        iterator_types = ["parallel"]} ins(%table : memref<8xi64>) outs(%moved : memref<8xf32>) {
    ^bb0(%i: i64, %o: f32):
      %at = arith.index_cast %i : i64 to index
      %v = memref.load %own[%at] : memref<8xf32>
      linalg.yield %v : f32
    }
    BETWEEN
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
        iterator_types = ["parallel"]} ins(%moved : memref<8xf32>) outs(%y : memref<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
    func.return
  }
}
"""


def nests_of(table: str, between: str = "") -> list[Any]:
    text = TEXT.replace("TABLE", table).replace("BETWEEN", between)
    module = Parser(make_context(), text).parse_module()
    assert isinstance(module, ModuleOp)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    known_places_as_maps(module, function)
    function.verify()
    return [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]


def test_a_copy_is_joined_with_what_reads_it() -> None:
    *_, last = nests_of("0, 0, 1, 1, 2, 2, 3, 3")
    assert len(last.iterator_types) == 2  # (d0, d1) -> (d0), of 4 by 2
    assert len(nests_of("0, 0, 1, 1, 2, 2, 3, 3")) == 2


def test_places_without_an_order_are_left() -> None:
    assert len(nests_of("0, 3, 1, 1, 2, 2, 3, 3")) == 3


@pytest.mark.parametrize(
    "between",
    [
        "linalg.fill ins(%zero : f32) outs(%own : memref<8xf32>)",
        '"memref.copy"(%x, %own) : (memref<8xf32>, memref<8xf32>) -> ()',
        "%view = memref.subview %own[0] [8] [1] : memref<8xf32> to memref<8xf32, strided<[1]>>"
        "\nlinalg.fill ins(%zero : f32) outs(%view : memref<8xf32, strided<[1]>>)",
    ],
    ids=["filled", "copied to", "written by a view"],
)
def test_what_is_written_before_the_reader_is_copied(between: str) -> None:
    assert len(nests_of("0, 1, 2, 3, 4, 5, 6, 7", between)) == 3


def test_another_buffer_may_be_written() -> None:
    between = "linalg.fill ins(%zero : f32) outs(%z : memref<8xf32>)"
    assert len(nests_of("0, 1, 2, 3, 4, 5, 6, 7", between)) == 2


@pytest.mark.parametrize("seed", range(40))
def test_expressions_are_the_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, first, step = (int(n) for n in rng.integers((1, 0, 1), (20, 5, 6)))
    index = np.arange(count)
    table = first + (index // step if seed % 2 else index * (step - 1))
    expr = known_places._expression(1, table)
    assert expr is not None
    assert [expr.eval([99, int(n)], []) for n in index] == table.tolist()
    if count > 2:
        table[rng.integers(1, count)] += 1 + rng.integers(3)
        other = known_places._expression(1, table)
        if other is not None:
            assert [other.eval([99, int(n)], []) for n in index] == table.tolist()
