"""Products of computed bytes are exact: of any kinds and extents, however their operands lie."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.relayout import Array
from braid.driver.compile_source import missing_here
from braid.lowering.cpu.kernels.contraction.arithmetic import (
    ByteArithmetic,
    DotArithmetic,
    PairArithmetic,
    SingleArithmetic,
)
from braid.lowering.cpu.kernels.gemm_packing import GemmPackingFamily
from braid.targets.machines.cpus import cpu_machine
from braid.targets.machines.machine import Machine
from test.machines import AVX2, AVX512, HOST, SSE, distinct
from test.run.kernels.conftest import KernelCheck, make_group
from test.run.kernels.test_bytes import I8, U8, bytes_of, product, scales, types_of

AVX_VNNI = cpu_machine("x86-64-v3,+avxvnni")
AVX512_VNNI = cpu_machine("x86-64-v4,+avx512vnni")


MACHINES = [
    each
    for each in distinct(HOST, AVX512, AVX512_VNNI, AVX2, AVX_VNNI, SSE)
    if missing_here(each) is None
]
KINDS = {"us": (U8, I8), "su": (I8, U8), "uu": (U8, U8), "ss": (I8, I8)}
on_all = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


def with_pairs(names: str, values: Sequence[Sequence[Any]]) -> pytest.MarkDecorator:
    """Every machine with each of `values`, on the kinds of operands in turn.

    Machines and kinds meet in the other tests.
    """
    cases = [
        pytest.param(machine, kinds, *value, id="-".join(map(str, (machine.name, kinds, *value))))
        for (machine, value), kinds in zip(
            itertools.product(MACHINES, values), itertools.cycle(KINDS), strict=False
        )
    ]
    return pytest.mark.parametrize(f"machine,kinds,{names}", cases)


@pytest.fixture(scope="session")
def exact(check: KernelCheck) -> KernelCheck:
    return KernelCheck(0.0)


def plain(a: SSAValue, b: SSAValue) -> tuple[Sequence[TensorOp], list[SSAValue]]:
    op = MatmulOp.on(a, b, accumulator=i32)
    return [op], [op.output]


def epilogue(n: int, rank: int = 2) -> list[Array]:
    shape = (*[1] * (rank - 1), n)
    bias = np.random.default_rng(n).integers(-9999, 9999, shape).astype(np.int32)
    return [bias, *scales(*shape)]


@on_all
@pytest.mark.parametrize("kinds", KINDS)
@settings(max_examples=2, deadline=None)
@given(m=st.integers(1, 20), n=st.integers(1, 70), k=st.integers(1, 150))
def test_any_extents(
    exact: KernelCheck, machine: Machine, kinds: str, m: int, n: int, k: int
) -> None:
    a, b = KINDS[kinds]
    arrays = [bytes_of(a, m, k), bytes_of(b, k, n)]
    exact(GemmPackingFamily(machine), types_of(arrays), plain, arrays=arrays)


@with_pairs("m,k,n", [(1, 1, 1), (3, 3, 2), (2, 5, 1), (140, 64, 48), (1, 8, 300), (4, 64, 70)])
def test_epilogues(
    exact: KernelCheck, machine: Machine, kinds: str, m: int, k: int, n: int
) -> None:
    a, b = KINDS[kinds]
    arrays = [bytes_of(a, m, k), bytes_of(b, k, n), *epilogue(n)]
    exact(GemmPackingFamily(machine), types_of(arrays), product, arrays=arrays)


@with_pairs(
    "left,right",
    [((3, 7), (3, 7)), ((3, 7), (1, 7)), ((3, 1), (3, 7)), ((1, 7), (3, 1)), ((3, 7), (1, 1))],
)
def test_batches(
    exact: KernelCheck, machine: Machine, kinds: str, left: Sequence[int], right: Sequence[int]
) -> None:
    a, b = KINDS[kinds]
    arrays = [bytes_of(a, *left, 5, 22), bytes_of(b, *right, 22, 35), *epilogue(35, 4)]
    exact(GemmPackingFamily(machine), types_of(arrays), product, arrays=arrays)


@on_all
@pytest.mark.parametrize("kinds", KINDS)
def test_no_sum_of_extremes_saturates(exact: KernelCheck, machine: Machine, kinds: str) -> None:
    """Of all four pairs of the lowest and the largest number, each in a product of a batch."""
    dtypes = [np.uint8 if kind == U8 else np.int8 for kind in KINDS[kinds]]
    ends = [(np.iinfo(dtype).min, np.iinfo(dtype).max) for dtype in dtypes]
    a, b = np.empty((4, 9, 67), dtypes[0]), np.empty((4, 67, 33), dtypes[1])
    for number, (left, right) in enumerate(itertools.product(*ends)):
        a[number], b[number] = left, right
    exact(GemmPackingFamily(machine), types_of([a, b]), plain, arrays=[a, b])


@pytest.mark.parametrize("kinds", KINDS)
def test_columns_in_parts(exact: KernelCheck, kinds: str) -> None:
    """Words of all columns do not fit the cache, and rows are more than an iteration has."""
    a, b = KINDS[kinds]
    arrays = [bytes_of(a, 150, 1031), bytes_of(b, 1031, 1100)]
    exact(GemmPackingFamily(HOST), types_of(arrays), plain, arrays=arrays)


@pytest.mark.parametrize("kinds", KINDS)
def test_products_without_instructions(
    exact: KernelCheck, monkeypatch: pytest.MonkeyPatch, kinds: str
) -> None:
    monkeypatch.setattr(ByteArithmetic, "of", lambda *_: SingleArithmetic())
    a, b = KINDS[kinds]
    arrays = [bytes_of(a, 2, 5, 19), bytes_of(b, 1, 19, 35)]
    exact(GemmPackingFamily(HOST), types_of(arrays), plain, arrays=arrays)


@pytest.mark.parametrize(
    ("machine", "kind", "lanes"),
    [
        (AVX512_VNNI, DotArithmetic, 16),
        (AVX512, PairArithmetic, 16),
        (AVX_VNNI, DotArithmetic, 8),
        (AVX2, PairArithmetic, 8),
        (SSE, PairArithmetic, 4),
    ],
)
def test_machines_are_those_of_all_instructions(
    machine: Machine, kind: type[ByteArithmetic], lanes: int
) -> None:
    assert type(ByteArithmetic.of(machine, lanes)) is kind


def test_products_of_other_numbers_are_not_taken() -> None:
    types = [TensorType(f32, (4, 8)), TensorType(f32, (8, 4))]

    def build(a: SSAValue, b: SSAValue) -> tuple[Sequence[TensorOp], list[SSAValue]]:
        op = MatmulOp.on(a, b)
        return [op], [op.output]

    assert GemmPackingFamily(HOST).match(make_group(types, build)) is None
