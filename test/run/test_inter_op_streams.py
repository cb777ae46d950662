"""Models whose kernels run concurrently give the same bits as sequentially."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import CallOp
from xdsl.passes import ModulePass

import braid
from braid.analysis.execution.inter_op_streams import set_inter_op_stream
from braid.dialects.braid.attribute_names import INTER_OP_STREAMS
from braid.dialects.braid.variants import public_functions
from braid.driver.pipeline import passes_for
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context
from test.unit.passes.random_graphs import TYPE, Program, programs

WIDE = "tensor<1x8x6x6xf32>"


@dataclass(frozen=True)
class RandomStreamsPass(ModulePass):
    """Gives kernels any stream, or none: every choice is to be correct."""

    name = "random-streams"

    streams: int
    seed: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the streams."""
        choice = random.Random(self.seed)
        for function in public_functions(op):
            function.attributes[INTER_OP_STREAMS] = IntegerAttr(self.streams, i64)
            for call in function.body.block.ops:
                if isinstance(call, CallOp):
                    alone = choice.random() < 0.1
                    set_inter_op_stream(call, None if alone else choice.randrange(self.streams))


@st.composite
def wide_programs(draw: st.DrawFn) -> tuple[str, dict[str, np.ndarray]]:
    """Ops that read any two of the values before them: many can run side by side."""
    program = Program()
    values = ["%x"]
    for _ in range(draw(st.integers(4, 16))):
        x, y = (draw(st.sampled_from(values[-6:])) for _ in range(2))
        w = program.parameter("tensor<4x4x3x3xf32>")
        window = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>"
        pads = "pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64"
        match draw(st.sampled_from(["conv", "add", "concat", "tanh"])):
            case "conv":
                signature = f"({TYPE}, tensor<4x4x3x3xf32>) -> {TYPE}"
                bounded = program.new(f"braid.tanh {x} : ({TYPE}) -> {TYPE}")
                op = f"braid.conv {bounded}, {w} {{{window}, {pads}}} : {signature}"
            case "add":
                op = f"braid.sub {x}, {y} : ({TYPE}, {TYPE}) -> {TYPE}"
            case "concat":
                both = program.new(
                    f"braid.concat {x}, {y} {{dim = 1 : i64}} : ({TYPE}, {TYPE}) -> {WIDE}"
                )
                part = "offsets = array<i64: 0, 2, 0, 0>, sizes = array<i64: 1, 4, 6, 6>"
                op = (
                    f"braid.slice {both} {{{part}, strides = array<i64: 1, 1, 1, 1>}} : "
                    f"({WIDE}) -> {TYPE}"
                )
            case _:
                op = f"braid.tanh {x} : ({TYPE}) -> {TYPE}"
        values.append(program.new(op))
    total = values[-1]
    for value in values[-4:-1]:
        total = program.new(f"braid.add {total}, {value} : ({TYPE}, {TYPE}) -> {TYPE}")
    return program.text(total), program.parameters


BRANCHES = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = braid.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = braid.tanh %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = braid.matmul %1, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = braid.matmul %0, %2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %3 : tensor<64x64xf32>
}
"""


def check(text: str, parameters: dict[str, np.ndarray], streams: int, seed: int) -> None:
    def module() -> ModuleOp:
        return parse_mlir(make_context(), text, "f.mlir").module

    default = passes_for(module())
    alone = braid.compile(module(), parameters=parameters)
    beside = braid.compile(
        module(),
        parameters=parameters,
        threads=streams,
        passes=(*default, RandomStreamsPass(streams, seed)),
    )
    rng = np.random.default_rng(seed)
    for _ in range(3):
        x = rng.normal(size=(1, 4, 6, 6)).astype(np.float32)
        np.testing.assert_array_equal(beside(x), alone(x))


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@settings(max_examples=6, deadline=None)
@given(programs(), st.sampled_from([2, 4]), st.integers(0, 99))
def test_random_programs(
    program: tuple[str, dict[str, np.ndarray]], streams: int, seed: int
) -> None:
    check(*program, streams, seed)


@settings(max_examples=8, deadline=None)
@given(wide_programs(), st.sampled_from([2, 4]), st.integers(0, 99))
def test_wide_programs(program: tuple[str, dict[str, np.ndarray]], streams: int, seed: int) -> None:
    check(*program, streams, seed)


PADDED = """
!t = tensor<1x4x6x6xf32>
!w = tensor<4x4x3x3xf32>
func.func @main(%x: !t) -> !t {
  %v = braid.parameter {key = "v"} : !w
  %1 = braid.tanh %x : (!t) -> !t
  %2 = braid.sub %1, %x : (!t, !t) -> !t
  %3 = braid.tanh %2 : (!t) -> !t
  %4 = braid.conv %1, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64} : (!t, !w) -> !t
  %5 = braid.conv %3, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64} : (!t, !w) -> !t
  %6 = braid.add %4, %5 : (!t, !t) -> !t
  func.return %6 : !t
}
"""


@pytest.mark.parametrize("seed", range(3, 6))
def test_a_border_is_written_while_what_it_surrounds_is_read(seed: int) -> None:
    weights = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype(np.float32)
    check(PADDED, {"v": weights}, 4, seed)


@pytest.mark.parametrize("streams", [2, 4])
def test_streams_run_on_any_number_of_threads(streams: int, tmp_path: Path) -> None:
    def module() -> ModuleOp:
        return parse_mlir(make_context(), BRANCHES, "f.mlir").module

    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    expected = braid.compile(module())(x)
    model = braid.compile(module(), inter_op_threads=streams)
    model.save(tmp_path / "model.braid")
    np.testing.assert_array_equal(model(x), expected)
    for threads in (1, 2, 3, 5):
        loaded = braid.load(tmp_path / "model.braid", threads=threads)
        np.testing.assert_array_equal(loaded(x), expected)


def test_there_is_at_least_one_stream() -> None:
    module = parse_mlir(make_context(), BRANCHES, "f.mlir").module
    with pytest.raises(BraidError, match="inter_op_threads is 0, expected at least 1"):
        braid.compile(module, inter_op_threads=0)
