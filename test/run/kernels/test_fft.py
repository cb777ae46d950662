"""Fourier transforms by kernels for each order of vectors, against numpy in f64."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32, f64
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.fourier import FOURIER_KINDS, FftOp
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.fft import Fft, FftFamily, FourierSchedule
from braid.support.sizes.expression import symbol
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine
from test.machines import AVX512, HOST, SSE
from test.run.kernels.chosen_kernels import ChosenKernel
from test.run.kernels.conftest import at_end_of_page, candidate_of, make_group

FAMILY = FftFamily(HOST)
ULPS = 2
"""Errors that are allowed, in units of the last place times the root of log2 of the length."""


def candidate(
    shape: tuple[int, ...], kind: str, length: int, machine: Machine = HOST, type: Attribute = f32
) -> Fft:
    """Return the candidate for the transform along dim 1."""

    def build(x):
        op = FftOp.get(x, kind, 1, length)
        return [op], [op.output]

    found = candidate_of(FftFamily(machine), make_group([TensorType(type, shape)], build))
    assert isinstance(found, Fft)
    return found


def check(found: Fft, schedule: Schedule) -> None:
    """Run the kernel in two parts, before guard pages, and compare by the norm of the error."""
    op = found.group.body.block.first_op
    assert isinstance(op, FftOp)
    kernel = found.emit("kernel", schedule)
    dtype = to_numpy(op.result_type().element_type)
    x = np.random.default_rng(0).standard_normal(op.operand_type(0).get_shape()).astype(dtype)
    (expected,) = op.evaluate(x.astype(np.float64))
    y = at_end_of_page(np.full(expected.shape, 7, dtype))
    run, x = CallableKernel(kernel), at_end_of_page(x)
    middle = kernel.grid // 2
    run(x, y, begin=middle, end=kernel.grid)
    run(x, y, begin=0, end=middle)
    error = np.linalg.norm(y - expected) / np.linalg.norm(expected)
    bound = ULPS * np.finfo(dtype).eps * max(1, np.log2(op.length.value.data)) ** 0.5
    assert error <= bound, f"{schedule}: {error} > {bound}"


def check_all(found: Fft) -> None:
    """Check both orders of vectors, where there are two."""
    schedules = [schedule for level in (0, 1) for schedule in found.space(level)]
    for schedule in {each.is_row: each for each in reversed(schedules)}.values():
        check(found, schedule)


def check_length(length: int, *shape: int) -> None:
    """Check all kinds on this many signals, with extents before and after them."""
    for kind in FOURIER_KINDS:
        extent = length // 2 + 1 if kind == "irfft" else length
        for parts in {"rfft": (1,), "irfft": (2,)}.get(kind, (1, 2)):
            whole = (shape[0], extent, *shape[1:], parts)
            check_all(candidate(whole, kind, length))


@pytest.mark.parametrize(
    ("kind", "parts", "length"),
    [
        ("fft", 2, 1),
        ("irfft", 2, 2),
        ("ifft", 2, 15),
        ("fft", 1, 68),
        ("rfft", 1, 36),
        ("irfft", 2, 45),
        ("rfft", 1, 49),
        ("ifft", 1, 100),
        ("fft", 2, 74),
        ("irfft", 2, 74),
    ],
)
def test_lengths(kind: str, parts: int, length: int) -> None:
    """Transforms of one step, of several, and of a convolution; real ones also by halves."""
    extent = length // 2 + 1 if kind == "irfft" else length
    check_all(candidate((3, extent, parts), kind, length))


@pytest.mark.slow
@pytest.mark.parametrize("length", range(1, 201))
def test_all_short_lengths(length: int) -> None:
    check_length(length, 17)


@pytest.mark.slow
@pytest.mark.parametrize("length", [243, 343, 625, 997, 1000, 1331, 2048, 4099, 10007, 65536])
def test_long_lengths(length: int) -> None:
    check_length(length, 2)


@pytest.mark.parametrize("columns", [(16,), (2, 11)])
def test_columns(columns: tuple[int, ...]) -> None:
    """Along a dim before others: a vector has neighbours in those."""
    for kind, extent, parts in (("fft", 12, 2), ("rfft", 12, 1), ("irfft", 7, 2)):
        check_all(candidate((2, extent, *columns, parts), kind, 12))


@pytest.mark.parametrize("machine", [AVX512, SSE], ids=["avx512", "sse"])
@pytest.mark.parametrize("type", [f32, f64], ids=["f32", "f64"])
def test_machines(machine: Machine, type: Attribute) -> None:
    """With vectors of 2 to 16 elements, and rows that fill none."""
    for kind, length in (("fft", 40), ("irfft", 36)):
        extent = length // 2 + 1 if kind == "irfft" else length
        check_all(candidate((3, extent, 2), kind, length, machine, type))


@pytest.mark.parametrize("is_row", [True, False])
def test_low_radices(is_row: bool) -> None:
    """Whoever tunes may bound radices: the steps are then more."""
    found = candidate((3, 120, 2), "ifft", 120)
    schedule = FourierSchedule(is_row, 3)
    assert found.supports_schedule(schedule)
    check(found, schedule)


def test_other_schedules_are_not_supported() -> None:
    """Along columns no vector has positions of one signal, and steps have at most 16 points."""
    found = candidate((3, 120, 5, 2), "fft", 120)
    assert not found.supports_schedule(FourierSchedule(True, 16))
    for most in (1, 17):
        assert not found.supports_schedule(FourierSchedule(False, most))


@pytest.mark.parametrize("length", [60, 211])
def test_back_and_forth(length: int) -> None:
    """The inverse of a spectrum is the signal."""
    x = np.random.default_rng(1).standard_normal((4, length, 1)).astype(np.float32)
    there = candidate((4, length, 1), "rfft", length)
    back = candidate((4, length // 2 + 1, 2), "irfft", length)
    y, z = np.zeros((4, length // 2 + 1, 2), np.float32), np.zeros_like(x)
    CallableKernel(there.emit("there", next(there.space(0))))(x, y)
    CallableKernel(back.emit("back", next(back.space(0))))(y, z)
    np.testing.assert_allclose(z, x, atol=2e-6)


def _transform(kind: str, length: int):
    def build(x):
        op = FftOp.get(x, kind, 1, length)
        return [op], [op.output]

    return build


@pytest.mark.parametrize("likely", [1, 64])
def test_open_batches(likely: int) -> None:
    """Of any number, including none that fills a vector."""
    kernel = ChosenKernel(
        [(symbol("n"), 20, 2)], _transform("fft", 20), {"n": likely}, family="fft"
    )
    for count in (1, 5, 16, 33):
        kernel.check(n=count)
