"""Products by slabs of a table, which the GEMM family reads where they lie."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32, i8, i32, i64

from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherNdOp, GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.tiled import TiledFamily
from test.machines import AVX2, HOST
from test.run.kernels.conftest import make_group, random_array

UI8 = IntegerType(8, Signedness.UNSIGNED)


def with_gather(by_tuples: bool):
    def build(table, indices, a, bias):
        gather = (GatherNdOp.get if by_tuples else GatherOp.get)(table, indices, 0)
        product = MatmulOp.on(a, gather.output)
        biased = elementwise("add", product.output, bias)
        return [gather, product, biased], [biased.output]

    return build


@settings(max_examples=40, deadline=None)
@given(
    slabs=st.integers(1, 9),
    batch=st.lists(st.integers(1, 5), min_size=1, max_size=2),
    repeats=st.sampled_from(["nothing", "rows", "slabs"]),
    m=st.sampled_from([1, 2, 7, 30]),
    n=st.integers(1, 70),
    k=st.integers(1, 20),
    by_tuples=st.booleans(),
    index=st.sampled_from([i8, i32, i64, UI8]),
    machine=st.sampled_from([HOST, AVX2]),
    choice=st.sampled_from([0, 4]),
    seed=st.integers(0, 99),
)
def test_slabs(
    check, slabs, batch, repeats, m, n, k, by_tuples, index, machine, choice, seed
) -> None:
    """Indices count from the end where they are negative; batches repeat rows, or slabs."""
    once = [1] * len(batch)
    rows = once if repeats == "rows" else batch
    taken = once if repeats == "slabs" else batch
    shapes = [(slabs, k, n), (*taken, 1) if by_tuples else taken, (*rows, m, k), (*once, m, n)]
    types = [TensorType(index if i == 1 else f32, shape) for i, shape in enumerate(shapes)]
    arrays = [random_array(type, seed) for type in types]
    lowest = 0 if index == UI8 else -slabs
    drawn = np.random.default_rng(seed).integers(lowest, slabs, types[1].get_shape())
    arrays[1] = drawn.astype(to_numpy(index))
    check(GemmFamily(machine), types, with_gather(by_tuples), choices=[choice], arrays=arrays)


def test_tiles_do_not_copy_tables() -> None:
    """Tiles would copy whole columns of the table, where few of its slabs are read."""
    types = [TensorType(f32, shape) for shape in ((300, 64, 64), (2,), (2, 1, 64), (2, 1, 64))]
    types[1] = TensorType(i64, (2,))
    group = make_group(types, with_gather(by_tuples=False))
    assert TiledFamily(HOST, (GemmFamily(HOST),)).match(group) is None
    assert GemmFamily(HOST).match(group) is not None


def refused(data, indices, build) -> bool:
    a = TensorType(f32, (3, 2, 5))
    types = [TensorType(f32, data), TensorType(i64, indices), a]
    return GemmFamily(HOST).match(make_group(types, build)) is None


def test_what_is_no_slab_is_refused() -> None:
    """Gathers along other dims, in batches, by pairs, and values that are read once more."""

    def by(gather, number):
        def build(table, indices, a):
            slabs = gather.get(table, indices, number)
            product = MatmulOp.on(a, slabs.output)
            return [slabs, product], [product.output]

        return build

    def twice(table, indices, a):
        gather = GatherOp.get(table, indices, 0)
        product = MatmulOp.on(a, gather.output)
        sum_ = elementwise("add", product.output, gather.output)
        return [gather, product, sum_], [sum_.output]

    assert not refused((4, 5, 2), (3,), by(GatherOp, 0))
    assert refused((3, 4, 2), (5,), by(GatherOp, 1))
    assert refused((4, 6, 5, 2), (3, 2), by(GatherNdOp, 0))
    assert refused((3, 6, 5, 2), (3, 1), by(GatherNdOp, 1))
    a_square = (4, 5, 5)
    types = [TensorType(f32, a_square), TensorType(i64, (3,)), TensorType(f32, (3, 5, 5))]
    assert GemmFamily(HOST).match(make_group(types, twice)) is None
