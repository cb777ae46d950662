"""Where buffers of an arena lie at run time, whatever their sizes are."""

import ctypes
import random
from ctypes import POINTER, c_int32, c_int64
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test.c_programs import PLUGIN, build

NATIVE = Path(__file__).parents[3] / "runtime" / "native" / "src"
Buffer = tuple[int, int, int]
"""Bytes, first and last step."""


class CLifetimes(ctypes.Structure):
    """`braid_lifetimes`."""

    _fields_ = (
        ("count", c_int64),
        ("buffers", POINTER(c_int64)),
        ("by_first", POINTER(c_int32)),
        ("by_last", POINTER(c_int32)),
        ("others", POINTER(c_int32)),
        ("starts", POINTER(c_int64)),
        ("orders", c_int64),
    )


@pytest.fixture(scope="module")
def packing(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    sanitized = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-O1")
    output = tmp_path_factory.mktemp("packing") / "packing.so"
    sources = [NATIVE / f"packing{way}.c" for way in ("", "_by_size", "_by_time")]
    library = ctypes.CDLL(str(build(output, *sources, flags=(*PLUGIN, *sanitized))))
    library.braid_packing_bytes.restype = ctypes.c_size_t
    library.braid_packing_bytes.argtypes = (c_int64,)
    library.braid_pack.restype = ctypes.c_bool
    library.braid_lifetimes_read.restype = ctypes.c_bool
    library.braid_lifetimes_read.argtypes = (ctypes.c_void_p, c_int64, ctypes.c_void_p)
    return library


def pack(packing: ctypes.CDLL, buffers: list[Buffer]) -> tuple[list[int], int] | None:
    """Return the offset of each buffer, and the total bytes."""
    described = (c_int64 * (3 * len(buffers)))(*(n for buffer in buffers for n in buffer))
    lifetimes = CLifetimes()
    assert packing.braid_lifetimes_read(ctypes.byref(lifetimes), len(buffers), described)
    sizes = (c_int64 * len(buffers))(*(buffer[0] for buffer in buffers))
    room = ctypes.create_string_buffer(packing.braid_packing_bytes(len(buffers)))
    offsets, total = (c_int64 * len(buffers))(*([-1] * len(buffers))), c_int64(-1)
    done = packing.braid_pack(ctypes.byref(lifetimes), sizes, room, offsets, ctypes.byref(total))
    packing.braid_lifetimes_free(ctypes.byref(lifetimes))
    return (list(offsets), total.value) if done else None


def least(buffers: list[Buffer]) -> int:
    """Bytes that are live at once."""
    steps = {first for _, first, _ in buffers}
    return max(
        (sum(b for b, first, last in buffers if first <= s <= last) for s in steps), default=0
    )


def check(packing: ctypes.CDLL, buffers: list[Buffer]) -> float:
    """Check that no two overlap; return how many times the least bytes it takes."""
    found = pack(packing, buffers)
    assert found is not None
    offsets, total = found
    spans = np.array([(o, o + b[0], b[1], b[2]) for o, b in zip(offsets, buffers, strict=True)])
    spans = spans.reshape(-1, 4)
    assert (spans[:, 0] >= 0).all() and total == spans[:, 1].max(initial=0)
    spans = spans[spans[:, 0] < spans[:, 1]]
    for begin, end, first, last in spans:
        at_once = (spans[:, 2] <= last) & (first <= spans[:, 3])
        there = (spans[:, 0] < end) & (begin < spans[:, 1])
        assert (at_once & there).sum() == 1
    return total / max(1, least(buffers))


def chain(generator: random.Random, count: int, spans: tuple[int, ...]) -> list[Buffer]:
    """Results of a network: most are used by the next ops, some much later."""
    found: list[Buffer] = []
    for i in range(count):
        span = generator.choice(spans) if generator.random() < 0.9 else 40
        found.append((64 * int(2 ** generator.uniform(0, 14)), i, i + generator.randint(1, span)))
    return found


numbers = st.integers(0, 12)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 5, 8, 100]), numbers, numbers), max_size=25))
def test_no_two_overlap(packing: ctypes.CDLL, drawn: list[Buffer]) -> None:
    check(packing, [(64 * size, first, first + span) for size, first, span in drawn])


@pytest.mark.parametrize(("spans", "most"), [((1, 1, 1, 2, 3), 1.2), ((1, 300), 1.6)])
def test_networks(packing: ctypes.CDLL, spans: tuple[int, ...], most: float) -> None:
    """Of few and of many results at once, where one way of packing alone is quick enough."""
    for seed in range(5):
        assert check(packing, chain(random.Random(seed), 300, spans)) < most


def test_too_many_bytes(packing: ctypes.CDLL) -> None:
    assert pack(packing, [(2**62, 0, 1), (2**62, 1, 2)]) is None
    assert pack(packing, [(2**62, 0, 1), (2**62 - 64, 1, 2)]) is not None
    assert pack(packing, [(2**62, 0, 1), (2**62, 2, 3)]) == ([0, 0], 2**62)


def test_no_buffers(packing: ctypes.CDLL) -> None:
    assert pack(packing, []) == ([], 0)
