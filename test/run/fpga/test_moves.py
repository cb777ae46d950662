"""Transposes and reshapes: by what is read where, by the order of lanes, or through a memory."""

import math

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64

from braid.lowering.fpga.convert.design_of import Converted, design_of
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.cpp.simulate import CompiledDesign
from braid.lowering.fpga.design.memory_reads import banks_of
from braid.lowering.fpga.design.streams import permutes_of, stages_of
from braid.lowering.fpga.rtl.simulate import VerilatedDesign
from braid.lowering.fpga.schedule.select import WITHOUT_LIMIT, apply_schedule, select_schedule
from braid.support.errors import BraidError, UnsupportedError
from test.run.fpga.designs import IMAGES, check, images, parse, predicted
from test.run.fpga.test_kernels import dense

Shape = tuple[int, ...]


def moved(shape: Shape, *steps: Shape | str, behind: bool = False) -> str:
    """Return steps from one shape to the next: shapes to reshape to, and digits of a
    permutation."""
    lines: list[str] = []
    for step in steps:
        before = f"tensor<{'x'.join(map(str, shape))}xi8>"
        value = f"%{len(lines)}" if lines else "%x"
        if isinstance(step, str):
            order = [int(one) for one in step]
            shape = tuple(shape[one] for one in order)
            op = f"braid.transpose {value} {{permutation = array<i64: {str(order)[1:-1]}>}}"
        else:
            shape, op = step, f"braid.reshape {value}"
        after = f"tensor<{'x'.join(map(str, shape))}xi8>"
        lines.append(f"%{len(lines) + 1} = {op} : ({before}) -> {after}")
    value, kind = f"%{len(lines)}", f"tensor<{'x'.join(map(str, shape))}xi8>"
    if behind:
        lines.append(f"%y = braid.add {value}, {value} : ({kind}, {kind}) -> {kind}")
        value = "%y"
    body, first = "\n".join(lines), lines[0].split("(")[1].split(")")[0]
    return f"func.func @main(%x: {first}) -> {kind} {{\n{body}\nfunc.return {value} : {kind}\n}}"


MEMORIES = {
    "channels last": moved((1, 3, 4, 5), "0231"),
    "channels first": moved((1, 4, 5, 3), "0312", behind=True),
    "rows and columns": moved((1, 3, 4, 5), "0132"),
    "matrix": moved((6, 4), "10"),
    "patches": moved((1, 2, 4, 6), (1, 2, 2, 2, 3, 2), "013524", (1, 8, 2, 3), behind=True),
    "no loops": moved((1, 6, 2, 2), (1, 4, 2, 3), behind=True),
    "wider beats": moved((4, 2), (2, 4), behind=True),
    "one beat": moved((1, 12), (1, 3, 2, 2), behind=True),
    "to one beat": moved((1, 3, 2, 2), (1, 12), behind=True),
}
WIRES = {
    "nothing": (moved((1, 3, 4, 5), (1, 3, 1, 20), behind=True), 1),
    "rows of a matrix": (moved((1, 3, 4, 5), "0231", (20, 3), behind=True), 1),
    "channels shuffled": (
        moved((1, 6, 2, 2), (1, 2, 3, 2, 2), "02134", (1, 6, 2, 2), behind=True),
        2,
    ),
}


def bit_exact_in_cpp(module: ModuleOp, converted: Converted) -> None:
    compiled = CompiledDesign(converted.design)
    for seed in (1, 2):
        given, expected = images(module, converted, None, seed)
        outputs = compiled.run(given, [array.shape for array in expected], IMAGES)
        for output, array in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(output, array)


def test_a_transpose_is_a_memory_that_is_read_in_another_order() -> None:
    """The slowest stage takes as long as an image has pixels; images follow at that rate."""
    module = parse(MEMORIES["channels last"])
    checked = check(module, 0, seeds=(1,))
    (permute,) = permutes_of(checked.converted.design)
    assert (permute.banks.value.data, permute.iterations) == (4, 20)
    assert predicted(checked.converted, 6) - predicted(checked.converted, 5) == 20
    bit_exact_in_cpp(module, checked.converted)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMORIES)
def test_orders_through_a_memory(name: str) -> None:
    module = parse(MEMORIES[name])
    checked = check(module, 0)
    assert len(permutes_of(checked.converted.design)) == 1
    bit_exact_in_cpp(module, checked.converted)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["channels first", "no loops", "patches", "to one beat"])
def test_all_banks(name: str) -> None:
    """Each number of banks that is a choice, with images that follow each other."""
    module = parse(MEMORIES[name])
    (first,) = permutes_of(design_of(function_named(module, "main"), {}).design)
    beat = len(first.order) // first.beats
    cycles: list[int] = []
    for banks, passes in banks_of(first):
        converted = design_of(function_named(module, "main"), {})
        select_schedule(converted.design, (WITHOUT_LIMIT,) * 5)
        (permute,) = permutes_of(converted.design)
        permute.unroll = DenseArrayBase.from_list(i64, [banks, beat // passes])
        apply_schedule(converted.design)
        given, expected = images(module, converted, None, 1)
        done = VerilatedDesign(converted.design).run(given, [one.shape for one in expected])
        for output, array in zip(done.outputs, expected, strict=True):
            np.testing.assert_array_equal(output, array)
        assert done.cycles == predicted(converted, IMAGES)
        cycles.append(done.cycles)
        bit_exact_in_cpp(module, converted)
    assert cycles == sorted(cycles, reverse=True)


@pytest.mark.parametrize("name", WIRES)
def test_what_moves_no_beat_needs_no_memory(name: str) -> None:
    text, stages = WIRES[name]
    converted = design_of(function_named(parse(text), "main"), {})
    assert not permutes_of(converted.design)
    assert len(stages_of(converted.design)) == stages
    if name == "channels shuffled":
        check(parse(text), 0, seeds=(1,))


@pytest.mark.parametrize("steps", [("0231", (1, 60)), ("0132", (1, 3, 20), "021", (1, 60))])
def test_a_product_takes_an_image_in_any_order(steps: tuple[Shape | str, ...]) -> None:
    """Its weights are moved instead."""
    weights = np.random.default_rng(1).integers(-128, 128, (60, 4))
    kind, text = "tensor<60x4xi8>", moved((1, 3, 4, 5), *steps)
    product = f"""%w = braid.constant {{value = dense<{dense(weights)}> : {kind}}} : {kind}
      %y = braid.matmul %{len(steps)}, %w {{accumulator = i32}}
          : (tensor<1x60xi8>, {kind}) -> tensor<1x4xi32>
      func.return %y : tensor<1x4xi32>"""
    text = text.replace("-> tensor<1x60xi8> {", "-> tensor<1x4xi32> {")
    end = f"func.return %{len(steps)} : tensor<1x60xi8>"
    assert end in text
    checked = check(parse(text.replace(end, product)), 4, seeds=(1,))
    assert not permutes_of(checked.converted.design)


def test_banks_that_give_two_words_in_a_cycle_are_refused() -> None:
    converted = design_of(function_named(parse(MEMORIES["channels first"]), "main"), {})
    (permute,) = permutes_of(converted.design)
    beat = len(permute.order) // permute.beats
    permute.unroll = DenseArrayBase.from_list(i64, [1, beat])
    with pytest.raises(BraidError, match=rf"ii = 1 of a permute with 1 banks, expected {beat} at"):
        apply_schedule(converted.design)


def test_a_sum_of_tensors_of_another_rank_is_refused() -> None:
    text = moved((1, 12), (1, 3, 4), behind=True)
    with pytest.raises(UnsupportedError, match="a tensor of rank 3 on an FPGA"):
        design_of(function_named(parse(text), "main"), {})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_transposes(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = (1, *(int(one) for one in random.integers(1, 7, 3)))
    order = "0" + "".join(str(one + 1) for one in random.permutation(3))
    steps: list[Shape | str] = [order]
    if seed % 3 == 0:
        rows = math.prod(shape)
        steps.append((rows, 1) if seed % 2 else (1, rows))
    module = parse(moved(shape, *steps, behind=True))
    bit_exact_in_cpp(module, check(module, 0, seeds=(seed,)).converted)
