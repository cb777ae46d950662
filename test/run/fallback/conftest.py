"""Runs a group of ops by its fallback kernel and compares it with the ops' semantics."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block
from xdsl.rewriter import Rewriter

from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.relayout import Array, to_storage
from braid.lowering.cpu.call import call_kernel
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.targets.kernels.kernel_family import Kernel
from test.run.groups import evaluate
from test.storage import from_storage

Build = Callable[..., Sequence[TensorOp]]


def make_group(
    types: Sequence[Attribute], build: Build, layouts: Sequence[str | None], every: bool = False
) -> FusedOp:
    """Return a group of the ops that `build` makes; its results are those of the last op, or of
    all."""
    block = Block(arg_types=types)
    ops = build(*block.args)
    for op in ops:
        block.add_op(op)
    results = [result for op in (ops if every else ops[-1:]) for result in op.results]
    for index, tag in enumerate(layouts):
        if tag is not None:
            type = with_layout(results[index].type, Layout.parse(tag))
            results[index] = Rewriter.replace_value_with_new_type(results[index], type)
    block.add_op(YieldOp(*results))
    outside = Block(arg_types=types)
    group = FusedOp(outside.args, [value.type for value in results], block)
    group.verify()
    return group


def random_input(type: Attribute, generator: np.random.Generator) -> Array:
    assert isinstance(type, TensorType)
    dtype = to_numpy(type.element_type)
    if is_float(type.element_type):
        return generator.uniform(-2, 2, type.get_shape()).astype(dtype)
    if dtype == np.bool_:
        return generator.integers(0, 2, type.get_shape()).astype(dtype)
    low = 0 if dtype.kind == "u" else -5
    return generator.integers(low, 6, type.get_shape()).astype(dtype)


def store(array: Array, layout: Layout) -> Array:
    return np.ascontiguousarray(array) if layout.is_row_major else to_storage(array, layout)


def stored_arrays(group: FusedOp, inputs: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Return the operands of a group, and memory for its results, as stored."""
    stored = [store(x, layout_of(type)) for x, type in zip(inputs, group.inputs.types, strict=True)]
    outputs = [
        # Earlier contents of memory must not matter.
        np.full(
            layout_of(type).storage_shape(type.get_shape()),
            1 if to_numpy(type.element_type) == np.bool_ else 77,
            to_numpy(type.element_type),
        )
        for type in group.outputs.types
    ]
    return stored, outputs


def run(kernel: Kernel, group: FusedOp, inputs: Sequence[Array]) -> list[Array]:
    """Return the results as stored."""
    stored, outputs = stored_arrays(group, inputs)
    call_kernel(kernel, [*stored, *outputs])
    return outputs


def logical_array(stored: Array, layout: Layout, shape: Sequence[int]) -> Array:
    """Return a result by its logical indices."""
    return stored if layout.is_row_major else from_storage(stored, layout, shape)


def compare_results(group: FusedOp, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Whether results, as stored, equal the semantics of the ops; tails are zeros."""
    expected = evaluate(group, inputs)
    for actual, reference, value in zip(outputs, expected, group.terminator.arguments, strict=True):
        layout, shape = layout_of(value.type), np.shape(reference)
        logical = logical_array(actual, layout, shape)
        compare(logical, np.asarray(reference), value.owner.name)
        np.testing.assert_array_equal(actual, store(logical, layout), "tail is not zero")


TOLERANCES = {2: 2e-2, 4: 1e-5, 8: 1e-12}


def compare(actual: Array, expected: Array, what: str) -> None:
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected, what)
        return
    wide, reference = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(wide), np.isfinite(reference), what)
    finite = np.isfinite(reference)
    np.testing.assert_array_equal(wide[~finite], reference[~finite], what)
    scale = max(np.abs(reference[finite]).max(initial=0), 1e-30)
    error = np.abs(wide - reference)[finite].max(initial=0)
    assert error <= TOLERANCES[expected.dtype.itemsize] * scale, what


Check = Callable[..., Kernel]


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compiled kernels of earlier runs must not hide an error."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_CACHE_DIR", str(directory))
        yield directory


@pytest.fixture(scope="session")
def check() -> Check:
    def check(
        types: Sequence[Attribute],
        build: Build,
        *,
        layouts: Sequence[str | None] = (),
        inputs: Mapping[int, Array] | None = None,
        every: bool = False,
    ) -> Kernel:
        """Compare kernel and semantics on random inputs, with `inputs` given, including tails.

        The results are those of the last op, or of every op.
        """
        group = make_group(types, build, layouts, every)
        kernel = emit_fallback(group, "tested")
        kernel.module.verify()
        generator = np.random.default_rng(0)
        arrays = [
            (inputs or {}).get(i, random_input(type, generator)) for i, type in enumerate(types)
        ]
        compare_results(group, arrays, run(kernel, group, arrays))
        return kernel

    return check
