"""What kernels are compared with: right ones agree on operands of all seeds, wrong ones do not."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import SSAValue

from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp, RequantizeOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.lowering.cpu.call import call_kernel
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.tuning.kernel_runs import Reference
from test.run.fallback.conftest import make_group

Build = Callable[..., Sequence[TensorOp]]
u8, u16 = (IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16))


def with_number(name: str, value: SSAValue, number: int) -> list[TensorOp]:
    """Return an op on a value of integers and a number."""
    type = cast("TensorType[Any]", value.type)
    shape = [1] * type.get_num_dims()
    other = ConstantOp.of(np.full(shape, number), to_numpy(type.element_type))
    return [other, elementwise(name, value, other)]


def product(x: SSAValue, w: SSAValue, accumulator: Any = None) -> MatmulOp:
    return MatmulOp.on(x, w, accumulator=accumulator)


def quantized(x: Any, w: Any, b: Any, scale: Any, zero: Any) -> list[TensorOp]:
    p = product(x, w)
    return [p, a := elementwise("add", p, b), QuantizeOp.on(a, scale, zero)]


def without_bias(x: Any, w: Any, b: Any, scale: Any, zero: Any) -> list[TensorOp]:
    return scaled(x, w, scale, zero)


def scaled(x: Any, w: Any, scale: Any, zero: Any) -> list[TensorOp]:
    return [p := product(x, w), QuantizeOp.on(p, scale, zero)]


def zero_off_by_one(x: Any, w: Any, b: Any, scale: Any, zero: Any) -> list[TensorOp]:
    more = with_number("add", zero, 1)
    return [*more, *quantized(x, w, b, scale, more[-1].results[0])]


def narrow_quantized(x: Any, w: Any, scale: Any, zero: Any) -> list[TensorOp]:
    """Of f16 and bf16, by sums of f32 that are rounded."""
    p = product(x, w)
    return [p, c := elementwise("cast", p.output, element_type=f32), QuantizeOp.on(c, scale, zero)]


def narrow_zero_off_by_one(x: Any, w: Any, scale: Any, zero: Any) -> list[TensorOp]:
    more = with_number("add", zero, 1)
    return [*more, *narrow_quantized(x, w, scale, more[-1].results[0])]


def requantized(x: Any, w: Any, m: Any, shift: Any, zero: Any) -> list[TensorOp]:
    return [p := product(x, w, i32), RequantizeOp.get(p.output, m, shift, zero)]


def shift_off_by_one(x: Any, w: Any, m: Any, shift: Any, zero: Any) -> list[TensorOp]:
    more = with_number("add", shift, 1)
    return [*more, *requantized(x, w, m, more[-1].results[0], zero)]


def one(name: str) -> Build:
    def build(*operands: Any) -> list[TensorOp]:
        return [elementwise(name, *operands)]

    return build


def by_sum(name: str) -> Build:
    """Return counts of bits and divisors that are computed."""

    def build(x: Any, z: Any) -> list[TensorOp]:
        return [c := elementwise("add", z, z), elementwise(name, x, c)]

    return build


def floor_modulo(x: Any, z: Any) -> list[TensorOp]:
    r = elementwise("rem", x, z)
    return [r, a := elementwise("add", r, z), elementwise("rem", a, z)]


def of_product(name: str) -> Build:
    def build(x: Any, w: Any, z: Any) -> list[TensorOp]:
        return [p := product(x, w), elementwise(name, p, z)]

    return build


def floored(name: str) -> Build:
    def build(x: Any, w: Any) -> list[TensorOp]:
        return [p := product(x, w), f := elementwise(name, p), elementwise("sub", p, f)]

    return build


def cast_product(*functions: str) -> Build:
    def build(x: Any, w: Any) -> list[TensorOp]:
        made: list[Any] = [product(x, w)]
        for name in functions:
            made.append(elementwise(name, made[-1]))
        return [*made, elementwise("cast", made[-1].results[0], element_type=i32)]

    return build


def halves(x: Any) -> list[TensorOp]:
    """Of integers, rounded to even ones."""
    wide = elementwise("cast", x, element_type=f32)
    half = ConstantOp.of(np.full([1, 1], 0.5), np.float32)
    h = elementwise("mul", wide, half)
    r = elementwise("round", h)
    return [wide, half, h, r, elementwise("cast", r.output, element_type=i32)]


def halves_up(x: Any) -> list[TensorOp]:
    one = ConstantOp.of(np.full([1, 1], 1), np.int32)
    more = elementwise("add", x, one)
    return [one, more, *with_number("shift_right", more.output, 1)]


def cast_to_bytes(*functions: str) -> Build:
    def build(x: Any) -> list[TensorOp]:
        made = [elementwise(name, x) for name in functions]
        return [*made, elementwise("cast", made[-1].output if made else x, element_type=i8)]

    return build


def place(kind: str) -> Build:
    def build(x: Any) -> list[TensorOp]:
        return [s := ReduceOp.get(x, "add", [1]), ArgReduceOp.get(s, kind, 0)]

    return build


def indexed(op: Callable[..., Any], most: int | None = None) -> Build:
    """At its indices, or at others: none behind `most`."""

    def build(x: Any, i: Any, *updates: Any) -> list[TensorOp]:
        if most is None:
            return [op(x, i, *updates)]
        other = with_number("minimum", i, most)
        return [*other, op(x, other[-1].results[0], *updates)]

    return build


def from_the_end(x: Any, i: Any) -> list[TensorOp]:
    """As models in ONNX have it, whose indices may be negative."""
    zero, extent = (ConstantOp.of(np.full([1], n), np.int64) for n in (0, 30))
    is_negative, other = elementwise("lt", i, zero), elementwise("add", i, extent)
    index = elementwise("select", is_negative, other, i)
    return [zero, extent, is_negative, other, index, GatherOp.get(x, index, 0)]


def dequantized(q: Any, scale: Any, zero: Any) -> list[TensorOp]:
    return [DequantizeOp.on(q, scale, zero)]


def dequantized_off_by_one(q: Any, scale: Any, zero: Any) -> list[TensorOp]:
    more = with_number("add", zero, 1)
    return [*more, DequantizeOp.on(q, scale, more[-1].results[0])]


Argument = tuple[Any, Sequence[int]]
QUANTIZED: Sequence[Argument] = (
    *((f32, (64, 96)), (f32, (96, 64)), (f32, (1, 64)), (f32, (1, 64)), (i8, (1, 64))),
)
REQUANTIZED: Sequence[Argument] = (
    *((i8, (24, 40)), (i8, (40, 48)), (i32, (1, 48)), (i32, (1, 48)), (u8, (1, 1))),
)
PRODUCTS: Sequence[Argument] = ((f32, (24, 40)), (f32, (40, 48)))


def narrow(element: Any) -> Sequence[Argument]:
    return (element, (24, 40)), (element, (40, 48)), (f32, (1, 1)), (u8, (1, 1))


def pair(element: Any) -> Sequence[Argument]:
    return (element, (6, 50)), (element, (6, 50))


CASES: dict[str, tuple[Sequence[Argument], Build, Build]] = {
    "bias": (QUANTIZED, quantized, without_bias),
    "zero point": (QUANTIZED, quantized, zero_off_by_one),
    "zero point, f16": (narrow(f16), narrow_quantized, narrow_zero_off_by_one),
    "zero point, bf16": (narrow(bf16), narrow_quantized, narrow_zero_off_by_one),
    "shift of a scale": (REQUANTIZED, requantized, shift_off_by_one),
    "real numbers": (
        ((i8, (6, 50)), (f32, (1, 50)), (i8, (1, 50))),
        dequantized,
        dequantized_off_by_one,
    ),
    "left": (pair(u8), one("shift_left"), one("shift_right")),
    "right": (pair(i32), one("shift_right"), one("shift_left")),
    "computed counts": (pair(u8), by_sum("shift_left"), one("shift_left")),
    "remainder": (pair(i8), one("rem"), floor_modulo),
    "computed divisors": (pair(i16), by_sum("div"), one("div")),
    "power": (pair(i32), one("pow"), one("mul")),
    "and": (pair(u16), one("and"), one("or")),
    "comparison": ((*PRODUCTS, (f32, (24, 48))), of_product("lt"), of_product("gt")),
    "before the point": (PRODUCTS, cast_product(), cast_product("round")),
    "behind the point": (PRODUCTS, floored("floor"), floored("ceil")),
    "halves": (((i32, (6, 50)),), halves, halves_up),
    "bytes": (((f32, (6, 50)),), cast_to_bytes(), cast_to_bytes("round")),
    "equality": (pair(i64), one("eq"), one("le")),
    "place": (((f32, (40, 48, 6)),), place("max"), place("min")),
    "gather": (
        ((f32, (30, 8)), (i64, (20,))),
        indexed(partial(GatherOp.get, dim=0)),
        indexed(partial(GatherOp.get, dim=0), 9),
    ),
    "gather from the end": (
        ((f32, (30, 8)), (i64, (20,))),
        from_the_end,
        indexed(partial(GatherOp.get, dim=0), 9),
    ),
    "gather elements": (
        ((i8, (6, 50)), (i32, (6, 20))),
        indexed(partial(GatherElementsOp.get, dim=1)),
        indexed(partial(GatherElementsOp.get, dim=1), 20),
    ),
    "gather tuples": (
        ((i16, (6, 50)), (i64, (20, 2))),
        indexed(GatherNdOp.get),
        indexed(GatherNdOp.get, 4),
    ),
    "scatter elements": (
        ((f32, (6, 50)), (i64, (6, 20)), (f32, (6, 20))),
        indexed(partial(ScatterElementsOp.get, dim=1)),
        indexed(partial(ScatterElementsOp.get, dim=1), 20),
    ),
    "scatter tuples": (
        ((i32, (6, 50)), (i64, (20, 2)), (i32, (20,))),
        indexed(ScatterNdOp.get),
        indexed(ScatterNdOp.get, 4),
    ),
}


def group_of(arguments: Sequence[Argument], build: Build) -> FusedOp:
    return make_group([TensorType(element, shape) for element, shape in arguments], build, ())


def computed(group: FusedOp, reference: Reference) -> list[Array]:
    """By the kernel of a group, which has been found right by other means."""
    results = list(reference.unwritten())
    call_kernel(emit_fallback(group, "tested"), [*reference.operands, *results])
    return results


def references(group: FusedOp, seeds: Sequence[int] = range(5)) -> list[Reference]:
    found = [Reference.of(group, stored_choice(group), seed) for seed in seeds]
    return [reference for reference in found if reference is not None]


@pytest.mark.parametrize("name", CASES)
def test_right_and_wrong_kernels_are_told_apart(name: str) -> None:
    arguments, right, wrong = CASES[name]
    group, other = group_of(arguments, right), group_of(arguments, wrong)
    for reference in references(group):
        results = computed(group, reference)
        assert reference.agrees(results)
        assert not reference.agrees(computed(other, reference))
        assert not reference.agrees([np.roll(result, 1) for result in results])
        assert len(np.unique(results[0])) > 1


@pytest.mark.parametrize("element", [f32, f16, bf16], ids=str)
def test_quantized_sums_in_another_order(element: Any) -> None:
    """In double precision some are the next number: where a sum is close to a half.

    Most are exact, and none of these may be another one.
    """
    arguments = (element, (128, 512)), (element, (512, 256)), (f32, (1, 1)), (i8, (1, 1))
    group = group_of(arguments, scaled if element == f32 else narrow_quantized)
    others = 0
    for reference in references(group, range(8)):
        x, w, scale, zero = (operand.astype(np.float64) for operand in reference.operands)
        result = np.clip(np.rint(x @ w / scale) + zero, -128, 127).astype(np.int8)
        assert reference.agrees([result])
        others += int((result != reference.results[0]).sum())
        is_exact = reference.least[0] == reference.most[0]
        assert is_exact.mean() > (0.95 if element == f32 else 0.3)
        place = tuple(np.argwhere(is_exact)[0])
        result[place] += 1 if result[place] < 100 else -1
        assert not reference.agrees([result])
    assert others > 0
