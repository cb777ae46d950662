"""Products of bytes that are all inputs of a model: integers are exact, on every CPU."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.driver.compile_source import missing_here
from braid.targets.machines.cpus import cpu_machine

Array = np.ndarray
CPUS = ("native", "haswell", "znver4", "x86-64")
ONNX = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int32": TensorProto.INT32}
KINDS = st.sampled_from([np.uint8, np.int8])
ZEROS = st.sampled_from(["none", "single", "vector"])


def numbers(rng: np.random.Generator, kind: type, shape: Sequence[int]) -> Array:
    """Return numbers of which a third are the ends of the range."""
    info = np.iinfo(kind)
    array = rng.integers(info.min, info.max + 1, shape)
    ends = rng.choice([info.min, info.max], array.shape)
    return np.where(rng.random(array.shape) < 1 / 3, ends, array).astype(kind)


def model_of(
    op: str, arrays: dict[str, Array], constants: dict[str, Array], result: str
) -> ModelProto:
    names = [*arrays]
    if op == "QLinearMatMul":
        names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    elif constants:
        names += [*constants]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"])],
        "product",
        [
            helper.make_tensor_value_info(name, ONNX[array.dtype.name], array.shape)
            for name, array in arrays.items()
        ],
        [helper.make_tensor_value_info("y", ONNX[result], None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def centered(a: Array, b: Array, zeros: Sequence[Array]) -> Array:
    """Return the product by definition; A has a zero point for each of its rows."""
    wide = [array.astype(np.int64) for array in (a, b, *zeros)]
    rows = wide[2][:, None] if wide[2].ndim else wide[2]
    return np.matmul(wide[0] - rows, wide[1] - wide[3])


def compiled_for(cpu: str, model: ModelProto, **options: int) -> braid.Model:
    if (missing := missing_here(cpu_machine(cpu))) is not None:
        pytest.skip(str(missing))
    return braid.compile(model, cpu=cpu, **options)


@pytest.mark.parametrize("cpu", CPUS)
@settings(max_examples=12, deadline=None)
@given(
    kinds=st.tuples(KINDS, KINDS),
    extents=st.tuples(
        st.sampled_from([1, 2, 5, 16, 70]),
        st.sampled_from([1, 3, 5, 64, 131]),
        st.sampled_from([1, 2, 33, 64]),
    ),
    batches=st.sampled_from([((), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), ()), ((1,), (3,))]),
    zeros=st.tuples(ZEROS, ZEROS),
    seed=st.integers(0, 99),
)
def test_sums_are_exact(cpu, kinds, extents, batches, zeros, seed) -> None:
    rng, (m, k, n) = np.random.default_rng(seed), extents
    a = numbers(rng, kinds[0], (*batches[0], m, k))
    b = numbers(rng, kinds[1], (*batches[1], k, n))
    points: list[Array] = []
    for which, kind, extent in zip(zeros, kinds, (m, n), strict=True):
        shape = (extent,) if which == "vector" else ()
        points.append(np.zeros((), kind) if which == "none" else numbers(rng, kind, shape))
    constants = {} if zeros == ("none", "none") else {"a_zero": points[0], "b_zero": points[1]}
    model = compiled_for(cpu, model_of("MatMulInteger", {"a": a, "b": b}, constants, "int32"))
    np.testing.assert_array_equal(model(a, b), centered(a, b, points))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kinds", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
def test_requantized_sums_are_rounded_once(cpu: str, kinds: tuple[type, type]) -> None:
    rng = np.random.default_rng(5)
    a, b = numbers(rng, kinds[0], (2, 7, 37)), numbers(rng, kinds[1], (2, 37, 21))
    zeros = [numbers(rng, kind, ()) for kind in kinds]
    constants = {
        "a_scale": np.float32(0.5),
        "a_zero": zeros[0],
        "b_scale": np.float32(0.25),
        "b_zero": zeros[1],
        "y_scale": np.float32(512),
        "y_zero": np.array(3, kinds[0]),
    }
    arrays = {"a": a, "b": b}
    model = compiled_for(cpu, model_of("QLinearMatMul", arrays, constants, a.dtype.name))
    steps = np.rint(centered(a, b, zeros) / 4096) + 3  # powers of two: no quotient is rounded
    info = np.iinfo(kinds[0])
    np.testing.assert_array_equal(model(a, b), np.clip(steps, info.min, info.max))


@pytest.mark.parametrize("shape", [(12, 64, 64, 128), (1, 3, 300, 517), (1, 140, 65, 1)])
def test_threads_share_a_product(shape: tuple[int, int, int, int]) -> None:
    rng, (batch, m, k, n) = np.random.default_rng(6), shape
    a, b = numbers(rng, np.int8, (batch, m, k)), numbers(rng, np.int8, (batch, k, n))
    model = compiled_for(
        "native", model_of("MatMulInteger", {"a": a, "b": b}, {}, "int32"), threads=2
    )
    none = [np.zeros((), np.int8)] * 2
    np.testing.assert_array_equal(model(a, b), centered(a, b, none))
