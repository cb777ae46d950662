"""Bandwidth-bound kernels: accesses are 16 bytes wide, and each byte is read once, by counting."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import NoneAttr, TensorType, bf16, f16, f32, f64, i64

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherNdOp, GatherOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp, TransposeOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.fallback import split_sums
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.host.codegen.target_machine import host_machine
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu, moved_bytes


def tensor(*shape: int, element: Any = f32, layout: str | None = None) -> Any:
    type = TensorType(element, shape)
    return type if layout is None else with_layout(type, Layout.parse(layout))


@dataclass(frozen=True)
class Case:
    """A group whose operands are read as often as `times` says; `shared` are left out of that.

    `narrow` accesses of a thread are not 16 bytes wide: elements that neighbours share, and writes
    at the end of a row. Some of i64 are two.
    """

    types: Sequence[Any]
    build: Callable[..., Any]
    inputs: Mapping[int, Array] = field(default_factory=dict[int, Array])
    layout: str | None = None
    shared: tuple[int, ...] = ()
    narrow: int = 0
    times: float = 1.0


def windows(x: Any) -> Any:
    """Maxima of two by two."""
    sides = {"strides": (2, 2), "pad_low": (0, 0), "pad_high": (0, 0), "dilations": (1, 1)}
    return PoolOp.get(x, "max", (2, 2), **sides)


ROWS = np.random.default_rng(0).permutation(48).reshape(6, 8)
HALF_PIXELS = Resampling(mode="nearest")
NEAREST = Resampling(mode="nearest", coordinates="asymmetric", nearest_mode="floor")
CASES = {
    "chain": Case([tensor(64, 60)] * 2, lambda x, y: [elementwise("add", x, y)]),
    "bf16": Case([tensor(40, 96, element=bf16)], lambda x: [elementwise("abs", x)]),
    "broadcast": Case(
        [tensor(4, 64, 32), tensor(1, 64, 1)],
        lambda x, s: [elementwise("mul", x, s)],
        shared=(1,),
        narrow=1,
    ),
    "softmax": Case([tensor(32, 384)], lambda x: [SoftmaxOp.get(x, 1)]),
    "reduction": Case(
        [tensor(16, 256)], lambda x: [ReduceOp.get(x, "add", [1])], shared=(1,), narrow=1
    ),
    "transpose": Case([tensor(64, 96)], lambda x: [TransposeOp.get(x, (1, 0))]),
    "concat": Case([tensor(4, 8, 16), tensor(4, 8, 48)], lambda x, y: [ConcatOp.get([x, y], 2)]),
    "concat of channels": Case(
        [tensor(1, 8, 6, 6, layout="acdb"), tensor(1, 24, 6, 6, layout="acdb")],
        lambda x, y: [ConcatOp.get([x, y], 1)],
        layout="acdb",
    ),
    "gather": Case(
        [tensor(48, 128), tensor(6, 8, element=i64)],
        lambda x, i: [GatherOp.get(x, i, 0)],
        {1: ROWS},
        shared=(1,),
        narrow=2,
    ),
    "gather of bf16": Case(
        [tensor(3, 48, 64, element=bf16), tensor(48, element=i64)],
        lambda x, i: [GatherOp.get(x, i, 1)],
        {1: ROWS.reshape(48)},
        shared=(1,),
        narrow=2,
    ),
    "gather_nd": Case(
        [tensor(48, 64), tensor(48, 1, element=i64)],
        lambda x, i: [GatherNdOp.get(x, i)],
        {1: ROWS.reshape(48, 1)},
        shared=(1,),
        narrow=2,
    ),
    "slice": Case(
        [tensor(4, 32, 64)], lambda x: [SliceOp.get(x, (1, 0, 16), (2, 32, 32))], times=0.25
    ),
    "pad": Case([tensor(4, 8, 32)], lambda x: [PadOp.get(x, (0, 1, 0), (0, 2, 0), 0.5)]),
    "resize": Case(
        [tensor(1, 16, 8, 8, layout="acdb")],
        lambda x: [ResizeOp.get(x, (1, 16, 16, 16), (1.0, 1.0, 2.0, 2.0), NEAREST)],
        layout="acdb",
    ),
    "resize channels first": Case(
        [tensor(2, 3, 6, 8, element=f16)],
        lambda x: [ResizeOp.get(x, (2, 3, 18, 16), (1.0, 1.0, 3.0, 2.0), NEAREST)],
        narrow=1,  # operands of 16 bytes of the result, adjacent in a warp
    ),
    "half pixels": Case(
        [tensor(2, 3, 4, 16)],
        lambda x: [ResizeOp.get(x, (2, 3, 8, 32), (1.0, 1.0, 2.0, 2.0), HALF_PIXELS)],
        narrow=1,
    ),
    "resize by 8": Case(
        [tensor(1, 4, 4, 8)],
        lambda x: [ResizeOp.get(x, (1, 4, 4, 64), (1.0, 1.0, 1.0, 8.0), NEAREST)],
        times=2.0,  # two threads have neighbours that are the same element
        narrow=1,
    ),
    "every second row": Case(
        [tensor(3, 8, 32)],
        lambda x: [i := ConstantOp.of(np.arange(1, 8, 2)), GatherOp.get(x, i, 1)],
        times=0.5,
    ),
    "first rows twice": Case(
        [tensor(3, 8, 32)],
        lambda x: [i := ConstantOp.of(np.arange(6) // 2), GatherOp.get(x, i, 1)],
        times=3 / 8,
    ),
    "some columns twice": Case(
        [tensor(6, 64, element=f16)],
        lambda x: [i := ConstantOp.of(np.arange(32) // 2 + 16), GatherOp.get(x, i, 1)],
        times=0.25,
        narrow=1,
    ),
    "repeated elements": Case(
        [tensor(6, 16, 1, element=bf16), tensor(6, 16, 2, element=bf16)],
        lambda x, y: [elementwise("mul", x, y)],
        narrow=1,
    ),
    "pool": Case(
        [tensor(1, 32, 8, 8, layout="acdb")],
        lambda x: [windows(x)],
        layout="acdb",
    ),
    # What a window has beyond the points of a thread is read by 8 bytes, and no more.
    "pool channels first": Case([tensor(2, 3, 8, 16)], lambda x: [windows(x)], narrow=1),
    "pool of bf16 channels first and what follows": Case(
        [tensor(2, 3, 6, 32, element=bf16), tensor(1, 3, 1, 1, element=bf16)],
        lambda x, s: [p := windows(x), elementwise("mul", p, s)],
        shared=(1,),
        narrow=2,
    ),
    "pool of bf16 and what follows": Case(
        [tensor(1, 32, n, n, layout="acdb", element=bf16) for n in (8, 1)],
        lambda x, s: [p := windows(x), elementwise("mul", p, s)],
        layout="acdb",
        shared=(1,),
    ),
}


@pytest.mark.parametrize(
    ("types", "build"),
    [
        ([tensor(2, 24, 8, 8, layout="acdb", element=bf16)], lambda x: [windows(x)]),
        ([tensor(2, 24, 8, 8)], lambda x: [p := windows(x), elementwise("tanh", p)]),
        (
            [tensor(9, 20, element=f64), tensor(20, 7, element=f64), tensor(1, 7, element=f64)],
            lambda x, w, b: [p := MatmulOp.on(x, w), elementwise("add", p, b)],
        ),
    ],
    ids=["channels last", "channels first", "products of f64"],
)
def test_sums_and_what_follows_are_one_entry(types: Sequence[Any], build: Any) -> None:
    """Without memory for the sums, which 16-bit floats have in f32."""
    layout = "acdb" if types[0].encoding != NoneAttr() else None
    group = make_group(types, build, [layout])
    for unaligned in (False, True):
        kernel = check_group(group, emit_fallback, unaligned=unaligned)
        assert len(kernel.launches.launches) == 1 and kernel.scratch_bytes == 0


@pytest.mark.parametrize("name", CASES)
def test_each_byte_is_moved_once(name: str) -> None:
    case = CASES[name]
    group = make_group(case.types, case.build, [case.layout])
    check_group(group, emit_fallback, case.inputs)
    for number, value in enumerate((*group.inputs, *group.outputs)):
        if number not in case.shared:
            size = int(np.prod(shape_of(value))) * bytes_of(value.type.element_type)
            times = case.times if number < len(group.inputs) else 1.0
            assert moved_bytes()[number] == times * size, number


def test_results_of_rows_are_the_only_narrow_accesses() -> None:
    """One thread of a row writes, so that by bytes next to everything is 16 bytes wide."""
    case = CASES["reduction"]
    rows, columns = 4, 2048
    check_group(make_group([tensor(rows, columns)], case.build, [None]), emit_fallback)
    read, written = moved_bytes()
    assert (read, written) == (4 * rows * columns, 4 * rows)


@pytest.mark.parametrize("name", CASES)
def test_accesses_are_wide(name: str) -> None:
    case = CASES[name]
    kernel = emit_fallback(make_group(case.types, case.build, [case.layout]), "tested")
    (code,) = compile_gpu_kernels([kernel], gpu("sm_80"), host_machine(), jobs=1)
    usual = re.sub(
        r"\.entry \w+_unaligned.*?(?=\.entry|\Z)", "", code.ptx.decode(), flags=re.DOTALL
    )
    accesses = re.findall(r"(?:ld|st)\.global\.(?:nc\.)?(\S+)", usual)
    narrow = [own for own in accesses if own not in ("v4.b32", "v2.b64")]
    assert len(narrow) == case.narrow, accesses
    assert len(accesses) > len(narrow)


@pytest.mark.parametrize("name", CASES)
def test_buffers_that_begin_anywhere(name: str) -> None:
    case = CASES[name]
    group = make_group(case.types, case.build, [case.layout])
    check_group(group, emit_fallback, case.inputs, unaligned=True)


FEW = {
    "channels last": ([tensor(1, 16, 48, 30, layout="acdb")], "add", (2, 3)),
    "first dim": ([tensor(768, 12, element=bf16)], "maximum", (0,)),
    "inner dim": ([tensor(3, 300, 7)], "minimum", (1,)),
    "f64": ([tensor(5, 600, 2, element=f64)], "add", (1,)),
    "i64": ([tensor(512, 3, element=i64)], "add", (0,)),
    "products and more": ([tensor(2, 289, 5)], "add", (1,)),
    "blocks of channels": ([tensor(3, 20, 5, layout="aBc16b")], "add", (0, 1, 2)),
}


@pytest.mark.parametrize("name", FEW)
def test_few_sums_of_many_are_made_of_parts(name: str) -> None:
    """More threads than results have points work, and each byte is read once."""
    types, kind, dims = FEW[name]

    def build(x: Any) -> Any:
        ops = [elementwise("mul", x, x)] if name == "products and more" else []
        ops.append(ReduceOp.get(ops[-1].output if ops else x, kind, dims))
        return [*ops, elementwise("neg", ops[-1])] if name == "inner dim" else ops

    layout = "acdb" if name == "channels last" else None
    group = make_group(types, build, [layout])
    for unaligned in (False, True):
        kernel = check_group(group, emit_fallback, unaligned=unaligned)
        size = int(np.prod(shape_of(group.inputs[0]))) * bytes_of(types[0].element_type)
        assert moved_bytes()[0] == size
    assert kernel.scratch_bytes > 0


def test_parts_begin_with_what_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_sums, "neutral", lambda op: 1.0)
    group = make_group([tensor(512, 3)], lambda x: [ReduceOp.get(x, "add", (0,))], ())
    with pytest.raises(AssertionError):
        check_group(group, emit_fallback)
