"""Sizes in types: text, and inference on sizes, which must equal inference on numbers."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import VerifyException

import braid
from braid.analysis.interpreter import interpret
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import TensorOp, extents_of, fits, tensor_type
from braid.dialects.braid.elementwise import elementwise, repeated_shape
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.movement import PadOp, SliceOp
from braid.dialects.braid.sized_ops import SizedSliceOp, SizedTopKOp, slice_of, top_k_of
from braid.dialects.braid.sizes import SizesAttr, SymbolAttr, extents_of_type
from braid.dialects.braid.sorting import TopKOp
from braid.support.errors import BraidError
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, Size, symbol
from test.unit.dialects.test_examples import OPERATIONS, example, parsed, with_arguments

ROWS, COLUMNS = symbol("rows"), symbol("columns")


def parsed_op(text: str, name: str) -> TensorOp | None:
    """Return the op of its example, None for one that is not only on tensors."""
    module = parsed(text)
    found = [op for op in module.walk() if op.name == name]
    return found[0] if found and isinstance(found[0], TensorOp) else None


def with_open_operand(op: TensorOp, operand: int, dims: range) -> Operation:
    """Return the op on the same operands, where some dims of one are symbols."""
    types = [
        tensor_type(
            value.type.element_type,  # type: ignore
            [
                symbol(f"size_{dim}") if index == operand and dim in dims else extent
                for dim, extent in enumerate(extents_of(value))
            ],
        )
        for index, value in enumerate(op.operands)
    ]
    block = Block(arg_types=types)
    results = [result.type for result in op.results]
    attributes = dict(op.attributes)
    return type(op).create(operands=block.args, result_types=results, attributes=attributes)


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - {"braid.yield"}))
def test_inference_on_sizes_is_that_on_numbers(name: str) -> None:
    text = with_arguments(example(OPERATIONS[name]))
    op = parsed_op(text, name)
    if op is None or not op.operands:
        pytest.skip("no op on tensors")
    inferred = 0
    for operand, value in enumerate(op.operands):
        rank = len(extents_of(value))
        for dims in [range(rank), *(range(dim, dim + 1) for dim in range(rank))]:
            opened = with_open_operand(op, operand, dims)
            assert isinstance(opened, TensorOp)
            try:
                types = opened.infer_result_types()
            except VerifyException:
                continue
            inferred += 1
            values = {"n": 9}  # in examples
            held = [evaluate(extent, values) for extent in extents_of(value)]
            values |= {f"size_{dim}": extent for dim, extent in enumerate(held)}
            for result, wanted in zip(types, op.results, strict=True):
                found = [evaluate(extent, values) for extent in extents_of_type(result)]
                expected = [evaluate(extent, values) for extent in extents_of(wanted)]
                assert found == expected, (operand, dims)
    # Rows of tuples, weights and normalized parameters have to be known.
    assert inferred > 0, "every open operand is refused"


def test_sizes_stay_in_types_and_text() -> None:
    source = """
    func.func @main(%x: tensor<?x?x8xf32, #braid.sizes<["rows", "(2 * columns + 2) floordiv 2"]>>) {
      return
    }
    """
    module = parsed(source)
    assert '#braid.sizes<["rows", "columns + 1"]>' in str(module)
    (block,) = (op.regions[0].block for op in module.ops)
    assert extents_of(block.args[0]) == (ROWS, COLUMNS + 1, 8)
    again = parsed(str(module))
    assert module.is_structurally_equivalent(again)


def test_a_layout_keeps_sizes() -> None:
    plain = tensor_type(f32, [ROWS, 16])
    blocked = with_layout(plain, Layout.named("aB16b"))
    assert extents_of_type(blocked) == (ROWS, 16)
    assert layout_of(blocked) == Layout.named("aB16b")
    assert with_layout(blocked, Layout.row_major(2)) == plain


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ('tensor<?x?xf32, #braid.sizes<["rows"]>>', "1 sizes for 2 open dims"),
        ('tensor<2xf32, #braid.sizes<["rows"]>>', "1 sizes for 0 open dims"),
        ('tensor<?xf32, #braid.sizes<["rows floordiv 0"]>>', "divides by zero"),
        ('tensor<?xf32, #braid.sizes<["rows +"]>>', "size"),
        ('tensor<?xf32, #braid.sized_layout<"a", ["rows +"]>>', "size"),
        ('tensor<?xf32, #braid.sized_layout<"abZ", ["rows"]>>', "does not name"),
        ('tensor<?x?xf32, #braid.sized_layout<"ba", ["rows"]>>', "1 sizes for 2 open dims"),
        ('tensor<?xf32, #braid.sized_layout<"ba", ["rows"]>>', "rank"),
    ],
)
def test_wrong_sizes_are_refused(type: str, message: str) -> None:
    source = f"func.func @main(%x: {type}) {{ %y = braid.neg %x : ({type}) -> {type} return }}"
    with pytest.raises((BraidError, VerifyException), match=message):
        parsed(source)


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ('tensor<4xf32, #braid.sizes<["a"]>>', "1 sizes for 0 open dims"),
        ('tensor<f32, #braid.sizes<["a"]>>', "1 sizes for 0 open dims"),
        ("tensor<?xf32, #braid.sizes<[]>>", "0 sizes for 1 open dims"),
        ('tensor<?xf32, #braid.sized_layout<"abc", ["n"]>>', "rank"),
        ('tensor<8xf32, #braid.sized_layout<"a", ["n"]>>', "1 sizes for 0 open dims"),
    ],
)
def test_wrong_sizes_of_arguments_are_refused(type: str, message: str) -> None:
    """Check types that no op of braid has."""
    with pytest.raises(BraidError, match=message):
        parsed(f"func.func @main(%x: {type}) -> {type} {{ return %x : {type} }}")


def test_assumptions_as_an_attribute() -> None:
    assumed = Assumed(minimum=1, maximum=64, multiple_of=8, likely=(8, 16))
    assert SymbolAttr.of(assumed).assumed == assumed
    assert SymbolAttr.of(Assumed()).assumed == Assumed()


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (ROWS, ROWS, ROWS),
        (ROWS, 1, ROWS),
        (1, 5, 5),
        (ROWS, 5, 5),
        (DYNAMIC, ROWS, DYNAMIC),
        (0, ROWS, 0),
    ],
)
def test_a_repeated_extent(left: Extent, right: Extent, expected: Extent) -> None:
    assert repeated_shape([[left], [right]]) == (expected,)
    assert repeated_shape([[right], [left]]) == (expected,)


def test_two_sizes_repeat_each_other() -> None:
    (extent,) = repeated_shape([[ROWS], [COLUMNS]])
    assert isinstance(extent, Size)
    for rows, columns in ((1, 7), (7, 1), (7, 7), (1, 1), (0, 1), (1, 0)):
        assert evaluate(extent, {"rows": rows, "columns": columns}) == (
            columns if rows == 1 else rows
        )


def test_sizes_that_are_never_equal_do_not_fit() -> None:
    assert fits([ROWS], [COLUMNS]) and fits([ROWS], [4]) and fits([DYNAMIC], [ROWS])
    assert not fits([ROWS], [ROWS + 1]) and not fits([2 * ROWS + 1], [4])


def test_a_slice_of_sizes() -> None:
    block = Block(arg_types=[tensor_type(f32, [ROWS, 8])])
    op = slice_of(block.args[0], [ROWS - 3, 0], [3, COLUMNS])
    assert isinstance(op, SizedSliceOp) and op.bound() is None
    assert extents_of(op.output) == (3, COLUMNS)
    op.verify()
    with pytest.raises(VerifyException, match="elements"):
        slice_of(block.args[0], [ROWS, 0], [3, 8])
    assert isinstance(slice_of(block.args[0], [1, 0], [3, 8]), SliceOp)


def test_a_selection_of_a_size() -> None:
    block = Block(arg_types=[tensor_type(f32, [8, ROWS])])
    op = top_k_of(block.args[0], ROWS // 2, 1, largest=False)
    assert isinstance(op, SizedTopKOp) and op.bound() is None
    assert [extents_of(result) for result in op.results] == [(8, ROWS // 2)] * 2
    for k in (ROWS + 1, -1 - ROWS):
        with pytest.raises(VerifyException, match="expected 0 to"):
            top_k_of(block.args[0], k, 1)
    with pytest.raises(VerifyException, match="k is 2 sizes, expected one"):
        SizedTopKOp.on(block.args[0], k=SizesAttr.of([ROWS, 1]), dim=op.dim, largest=op.largest)
    assert isinstance(top_k_of(block.args[0], 3, 0), TopKOp)


def test_plain_slices_and_pads_have_numbers() -> None:
    """Check that no kernel addresses elements by the mark of an open extent."""
    block = Block(arg_types=[tensor_type(f32, [8])])
    for lists in (([DYNAMIC], [2]), ([0], [DYNAMIC])):
        with pytest.raises(VerifyException):
            SliceOp.get(block.args[0], *lists)
    for lists in (([DYNAMIC], [0]), ([0], [DYNAMIC])):
        with pytest.raises(VerifyException):
            PadOp.get(block.args[0], *lists, 0.0)


@pytest.mark.parametrize(
    "op",
    [
        """%y = braid.sized_slice %x {offsets = #braid.sizes<["n"]>, sizes = #braid.sizes<["2"]>,
          strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<2xf32>""",
        """%y = braid.sized_pad %x {low = #braid.sizes<["n"]>, high = #braid.sizes<["0"]>,
          value = 0.0 : f32} : (tensor<8xf32>) -> tensor<12xf32>""",
        """%y = braid.size_values {values = #braid.sizes<["n"]>} : tensor<1xi64>""",
    ],
)
def test_no_code_is_made_of_sizes_without_values(op: str) -> None:
    """Check ops whose types are all of fixed shapes, so that nothing else refuses them."""
    type = op.rpartition("->")[2].strip() if "->" in op else "tensor<1xi64>"
    module = parsed(f"func.func @main(%x: tensor<8xf32>) -> {type} {{ {op}\n return %y : {type} }}")
    with pytest.raises(BraidError, match=r"sizes without values|no code for 'braid\.sized_"):
        braid.compile(module)
    with pytest.raises(BraidError, match="sizes without values"):
        interpret(module, [np.zeros(8, np.float32)])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("{min = 2 : i64, max = 1 : i64}", "no size is from 2 to 1"),
        ("{multiple_of = 0 : i64}", "multiple of 0"),
        ("{likely = array<f32: 1.0>}", "expected an array<i64>"),
        ("{likely = 3 : i64}", "expected an array<i64>"),
        ("{min = 1.0 : f32}", "expected an integer"),
        ("{least = 1 : i64}", "no entry 'least'"),
        ("{max = 4 : i64, likely = array<i64: 5>}", "likely size 5"),
    ],
)
def test_wrong_symbols_are_refused(entries: str, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        parsed(
            "func.func private @f(tensor<2xf32>) attributes "
            f"{{braid.symbols = {{n = #braid.symbol<{entries}>}}}}"
        )


@pytest.mark.parametrize("attribute", ["braid.symbols = 3 : i64", "braid.symbols = {n = 3 : i64}"])
def test_symbols_of_another_kind_are_refused(attribute: str) -> None:
    with pytest.raises(BraidError, match="a dictionary from names to symbols"):
        parsed(f"func.func private @f(tensor<2xf32>) attributes {{{attribute}}}")


@pytest.mark.parametrize(
    "name", ['say "n"', "a\nb", "größe", "x[0]", "min", "1", "a\\b", "\t", "?"]
)
def test_symbols_of_any_name_stay_in_text(name: str) -> None:
    type = tensor_type(f32, [symbol(name) * 2, 8])
    module = parsed(f"func.func private @f({type})")
    assert extents_of_type(type) == (symbol(name) * 2, 8)
    assert str(type) in str(module)


def test_a_cast_keeps_sizes() -> None:
    block = Block(arg_types=[tensor_type(f32, [ROWS, 8])])
    op = elementwise("cast", block.args[0], element_type=f32)
    assert op.output.type == tensor_type(f32, [ROWS, 8]) != TensorType(f32, [DYNAMIC, 8])
