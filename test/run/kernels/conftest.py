"""Runs a group by a kernel of a family and compares it with the ops' semantics."""

import ctypes
import mmap
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import Rewriter

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import Strides, set_strides, stored_choice
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.relayout import Array, to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.targets.kernels.kernel_family import (
    Candidate,
    InPlace,
    KernelFamily,
)
from braid.targets.kernels.schedules import Entries
from test.run.groups import evaluate
from test.schedules import emitted
from test.storage import from_storage

Build = Callable[..., tuple[Sequence[TensorOp], Sequence[SSAValue]]]


def make_group(
    types: Sequence[Attribute],
    build: Build,
    choice: LayoutChoice | None = None,
    *,
    is_verified: bool = True,
) -> FusedOp:
    """Return a group of the ops that `build` makes on block arguments of `types`, in some
    layouts."""
    if choice is not None:
        types = [with_layout(type, tag) for type, tag in zip(types, choice.operands, strict=True)]
    block = Block(arg_types=types)
    ops, results = build(*block.args)
    for op in ops:
        block.add_op(op)
    results = list(results)
    for index, layout in enumerate(choice.results if choice is not None else ()):
        type = with_layout(results[index].type, layout)
        results[index] = Rewriter.replace_value_with_new_type(results[index], type)
    block.add_op(YieldOp(*results))
    outside = Block(arg_types=types)
    group = FusedOp(outside.args, [value.type for value in results], block)
    if is_verified:
        group.verify()
    outside.add_op(group)
    return group


def candidate_of(family: KernelFamily, group: FusedOp) -> Candidate:
    """Return the candidate of the family for a group that it matches."""
    found = family.match(group)
    assert found is not None
    return found


def random_array(type: Attribute, seed: int) -> Array:
    """Numbers between -2 and 2, or small integers."""
    assert isinstance(type, TensorType)
    generator = np.random.default_rng(seed)
    dtype = to_numpy(type.element_type)
    if is_float(type.element_type):
        return generator.uniform(-2, 2, type.get_shape()).astype(dtype)
    return generator.integers(-5, 6, type.get_shape()).astype(dtype)


def _whole(array: Array) -> Array:
    """Return an array of sevens that is longer along each dim except the first."""
    return np.full([e + (d > 0) * (2 + d % 2) for d, e in enumerate(array.shape)], 7, array.dtype)


def at_end_of_page(array: Array) -> Array:
    """Return a copy that ends at inaccessible memory."""
    size = -(-max(array.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = np.frombuffer(mmap.mmap(-1, size + mmap.PAGESIZE), np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    behind = ctypes.c_void_p(pages.ctypes.data + size)
    assert libc.mprotect(behind, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    copy = pages[size - array.nbytes : size].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class KernelCheck:
    """Compares kernels with the semantics of the groups they were made of."""

    def __init__(self, tolerance: float = 2e-6) -> None:
        self.tolerance = tolerance

    def __call__(
        self,
        family: KernelFamily,
        types: Sequence[Attribute | Sequence[int]],
        build: Build,
        *,
        choices: Sequence[int] | None = None,
        schedule: Entries | None = None,
        arrays: Sequence[Array] | None = None,
        more: Sequence[Sequence[Array]] = (),
        relative: float = 0.0,
    ) -> None:
        """Run the group in the `choices` of layouts (all by default), in two parts and in place.

        In one of them, drawn by the case, it also runs on tensors inside of larger ones, so that
        layouts and boxes are combined over the cases of a family.

        A shape stands for a tensor of f32. With `relative`, that is how far every element may be
        from its reference; otherwise the largest reference counts. The kernels run on `more`
        operands too.
        """
        tensors = [t if isinstance(t, Attribute) else TensorType(f32, t) for t in types]
        plain = make_group(tensors, build)
        offered = candidate_of(family, plain).layouts
        assert offered
        arrays = arrays or [random_array(type, seed) for seed, type in enumerate(tensors)]
        expected = evaluate(plain, arrays)
        others = [(each, evaluate(plain, each)) for each in more]
        tried = offered if choices is None else [offered[i] for i in choices]
        boxed = crc32(f"{tensors} {schedule}".encode()) % len(tried)
        for number, choice in enumerate(tried):
            group = make_group(tensors, build, choice)
            candidate = candidate_of(family, group)
            chosen = next(candidate.space(0)) if schedule is None else schedule
            assert candidate.seconds(choice) > 0
            kernel = emitted(candidate, chosen)
            run = CallableKernel(kernel)
            for given, reference in ((arrays, expected), *others):
                self._compare(run, kernel.in_place, choice, given, reference, relative)
            if number == boxed:
                self._compare_boxes(family, group, choice, arrays, expected, chosen)

    def _compare(
        self,
        run: CallableKernel,
        in_place: Sequence[InPlace],
        choice: LayoutChoice,
        arrays: Sequence[Array],
        expected: Sequence[Array],
        relative: float,
    ) -> None:
        for pair in (None, *in_place):
            outputs = self._run(run, choice, arrays, expected, pair)
            for output, layout, reference in zip(outputs, choice.results, expected, strict=True):
                actual = from_storage(output, layout, reference.shape)
                largest = np.abs(reference[np.isfinite(reference)]).max(initial=1e-30)
                bound = 0.0 if relative else self.tolerance * largest
                np.testing.assert_allclose(actual, reference, rtol=relative, atol=bound)

    def _compare_boxes(
        self,
        family: KernelFamily,
        group: FusedOp,
        choice: LayoutChoice,
        arrays: Sequence[Array],
        expected: Sequence[Array],
        schedule: Entries,
    ) -> None:
        """Run the group on tensors inside of larger ones, for as many as the family supports.

        The results are the same, and nothing around them is written.
        """
        layouts = (*choice.operands, *choice.results)
        stored = [to_storage(a, tag) for a, tag in zip((*arrays, *expected), layouts, strict=True)]
        wholes = [_whole(array) for array in stored]
        strides: list[Strides | None] = [None] * len(stored)
        for number, whole in enumerate(wholes):
            strides[number] = tuple(s // whole.itemsize for s in whole.strides)
            set_strides(group, strides)
            if not candidate_of(family, group).supports_strides(stored_choice(group)):
                strides[number] = None
        set_strides(group, strides)
        if strides == [None] * len(stored):
            return
        buffers = [w if s else a.copy() for w, a, s in zip(wholes, stored, strides, strict=True)]
        boxes = [b[tuple(map(slice, a.shape))] for b, a in zip(buffers, stored, strict=True)]
        for box, array in zip(boxes, stored[: len(arrays)], strict=False):
            box[...] = array
        CallableKernel(emitted(candidate_of(family, group), schedule))(*buffers)
        results = stored[len(arrays) :]
        for box, buffer, array in zip(
            boxes[len(arrays) :], buffers[len(arrays) :], results, strict=True
        ):
            largest = np.abs(array[np.isfinite(array)]).max(initial=1e-30)
            np.testing.assert_allclose(box, array, rtol=0, atol=4 * self.tolerance * largest)
            box[...] = 7
            assert np.all(buffer == 7), "written outside of the result"
        set_strides(group, [None] * len(stored))

    def _run(
        self,
        kernel: CallableKernel,
        choice: LayoutChoice,
        arrays: Sequence[Array],
        expected: Sequence[Array],
        pair: InPlace | None,
    ) -> list[Array]:
        """Return the results as stored; with `pair`, one of them overwrites an operand."""
        stored = [to_storage(a, tag) for a, tag in zip(arrays, choice.operands, strict=True)]
        outputs = [
            to_storage(np.full_like(e, 7), tag)
            for e, tag in zip(expected, choice.results, strict=True)
        ]
        if pair is not None:
            operand, result = pair
            outputs[result] = stored[operand] = stored[operand].copy().view(outputs[result].dtype)
        stored = [at_end_of_page(array) for array in stored]
        if pair is not None:
            outputs[result] = stored[operand]
        half = kernel.grid // 2
        for begin, end in ((0, half), (half, kernel.grid)):
            kernel.scratch.fill(0xFF)  # what another call has left there is not read: NaN
            kernel(*stored, *outputs, begin=begin, end=end)
        return outputs


@pytest.fixture(scope="session")
def check(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelCheck]:
    """Return the comparison, with its own object cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield KernelCheck()
