"""Questions that shapes of models raise have answers: an unknown one costs a check per call."""

import pytest

from braid.support.sizes.assumptions import Answer, Assumed, Assumptions
from braid.support.sizes.reading import parse_size

POSITIVE = Assumed(minimum=1)
ASSUMED = Assumptions.of(
    {
        "batch": Assumed(minimum=1, maximum=64),
        "sequence": Assumed(minimum=1, maximum=512),
        "past": Assumed(minimum=0, maximum=2048),
        "height": Assumed(minimum=32, maximum=4096, multiple_of=32),
        "width": Assumed(minimum=32, maximum=4096, multiple_of=32),
        "h": POSITIVE,
        "w": POSITIVE,
        "n": Assumed(),
        "m": Assumed(),
        "k": Assumed(minimum=1, maximum=100),
        "heads": Assumed(minimum=1, maximum=32),
        "hidden": Assumed(minimum=64, maximum=4096, multiple_of=64),
        "window": Assumed(minimum=1, maximum=16),
        "one": Assumed(minimum=1, maximum=1),
        "start": Assumed(minimum=-(2**31), maximum=2**31 - 1),
    },
    [parse_size("n - 7")],
)
EQUAL, AT_MOST, DIVIDES = "equal", "at_most", "divides"
QUESTIONS = [
    # Broadcasts and products of shapes.
    (EQUAL, "sequence", "sequence", "yes"),
    (EQUAL, "sequence + 1", "sequence", "no"),
    (EQUAL, "batch", "sequence", "unknown"),
    (EQUAL, "one", "1", "yes"),
    (EQUAL, "height", "1", "no"),
    (EQUAL, "past + sequence", "sequence", "unknown"),
    (EQUAL, "(past + 1) + sequence", "sequence", "no"),
    (EQUAL, "select(h = 1, w, h)", "select(h = 1, w, h)", "yes"),
    (EQUAL, "select(height = 1, w, height)", "height", "yes"),
    (EQUAL, "select(sequence = 1, 1, sequence)", "sequence", "yes"),
    (AT_MOST, "1", "select(h = 1, w, h)", "yes"),
    (AT_MOST, "h", "max(h, w)", "yes"),
    # Reshapes, with what is left to -1.
    (EQUAL, "batch * sequence * 768", "(batch * sequence) * 768", "yes"),
    (EQUAL, "batch * sequence * 768 floordiv (sequence * 768)", "batch", "yes"),
    (EQUAL, "hidden floordiv heads * heads", "hidden", "unknown"),
    (EQUAL, "(batch * heads) * sequence floordiv (heads * sequence)", "batch", "yes"),
    (EQUAL, "height * width floordiv 1024 * 1024", "height * width", "yes"),
    (EQUAL, "height floordiv 16 * 16", "height", "yes"),
    (DIVIDES, "768", "batch * sequence * 768", "yes"),
    (DIVIDES, "sequence", "batch * sequence", "yes"),
    (DIVIDES, "64", "hidden * sequence", "yes"),
    (DIVIDES, "64", "batch * sequence * 32", "unknown"),
    (DIVIDES, "4", "4 * h + 2", "no"),
    (DIVIDES, "2", "2 * h + 1", "no"),
    (DIVIDES, "h * w", "h * w * batch + 2 * h * w", "yes"),
    # Blocks and padding.
    (DIVIDES, "16", "(sequence + 15) floordiv 16 * 16", "yes"),
    (DIVIDES, "16", "sequence ceildiv 16 * 16", "yes"),
    (AT_MOST, "sequence", "(sequence + 15) floordiv 16 * 16", "yes"),
    (AT_MOST, "(sequence ceildiv 16) * 16", "sequence + 15", "yes"),
    (AT_MOST, "sequence ceildiv 16 * 16", "512", "yes"),
    (EQUAL, "sequence ceildiv 16", "(sequence + 15) floordiv 16", "yes"),
    (EQUAL, "height ceildiv 32 * 32", "height", "yes"),
    (AT_MOST, "0", "(16 - sequence mod 16) mod 16", "yes"),
    (AT_MOST, "sequence mod 16", "15", "yes"),
    (EQUAL, "sequence + (16 - sequence mod 16) mod 16", "sequence ceildiv 16 * 16", "yes"),
    (DIVIDES, "window", "h ceildiv window * window", "yes"),
    (AT_MOST, "h", "h ceildiv window * window", "yes"),
    # Concats, slices and caches of attention.
    (AT_MOST, "past", "past + sequence", "yes"),
    (AT_MOST, "sequence", "past + sequence", "yes"),
    (AT_MOST, "past + sequence", "2560", "yes"),
    (AT_MOST, "past + sequence", "past", "no"),
    (EQUAL, "past + sequence - past", "sequence", "yes"),
    (AT_MOST, "min(sequence, 128)", "128", "yes"),
    (AT_MOST, "min(sequence, 128)", "sequence", "yes"),
    (AT_MOST, "1", "min(sequence, 128)", "yes"),
    (AT_MOST, "max(past - 512, 0)", "past", "yes"),
    (EQUAL, "min(max(past + 1, 0), past)", "past", "yes"),
    (AT_MOST, "0", "max(min(start, h) - max(start, 0), 0)", "yes"),
    (AT_MOST, "max(min(select(start <= -1, start + h, start), h), 0)", "h", "yes"),
    (AT_MOST, "min(k, n) - 1", "n", "yes"),
    (AT_MOST, "7", "n", "yes"),
    (AT_MOST, "m", "max(n, m) + min(n, m)", "yes"),
    (EQUAL, "max(n, m) + min(n, m)", "n + m", "yes"),
    (AT_MOST, "(h - 1) ceildiv 2", "h", "yes"),
    # Windows.
    (EQUAL, "(h + 2 * 1 - 3) floordiv 1 + 1", "h", "yes"),
    (EQUAL, "(h + 2 * 1 - 3) floordiv 2 + 1", "h ceildiv 2", "yes"),
    (EQUAL, "(h - 2) floordiv 2 + 1", "h floordiv 2", "yes"),
    (AT_MOST, "1", "(h + 2 * 1 - 3) floordiv 2 + 1", "yes"),
    (AT_MOST, "(h + 2 * 3 - 7) floordiv 2 + 1", "h", "yes"),
    (AT_MOST, "1", "(height + 2 * 3 - 7) floordiv 2 + 1", "yes"),
    (EQUAL, "(height - 1) floordiv 2 + 1", "height floordiv 2", "yes"),
    (EQUAL, "((height - 1) floordiv 2 + 1 - 1) floordiv 2 + 1", "height floordiv 4", "yes"),
    (EQUAL, "(((height - 1) floordiv 2) floordiv 2) floordiv 2 + 1", "height floordiv 8", "yes"),
    (EQUAL, "2 * (height floordiv 2)", "height", "yes"),
    (EQUAL, "2 * (h floordiv 2)", "h", "unknown"),
    (EQUAL, "(h - 1) * 2 + 2", "2 * h", "yes"),
    (AT_MOST, "2 * (h floordiv 2)", "h", "yes"),
    (AT_MOST, "h - 2 * (h floordiv 2)", "1", "yes"),
    (EQUAL, "((h ceildiv 2) ceildiv 2) ceildiv 2", "h ceildiv 8", "yes"),
    (AT_MOST, "h floordiv 4 * (w floordiv 4)", "h * w", "yes"),
    (AT_MOST, "height floordiv 4 * (width floordiv 4)", "1048576", "yes"),
    # Bytes, grids and indices.
    (AT_MOST, "batch * sequence * 768 * 4", "2147483647", "yes"),
    (AT_MOST, "batch * sequence * sequence * 4096", "2147483647", "unknown"),
    (AT_MOST, "h * w", "h * w * batch", "yes"),
    (AT_MOST, "0", "h * w - h", "yes"),
    (AT_MOST, "h + w - 1", "h * w", "yes"),
    (EQUAL, "batch * sequence", "0", "no"),
    (EQUAL, "n * 0", "0", "yes"),
    (AT_MOST, "batch * ((sequence + 63) floordiv 64)", "512", "yes"),
    # Floats.
    (EQUAL, "floor(f32(h) * f32(2.0))", "floor(f32(h) * f32(2.0))", "yes"),
    (AT_MOST, "floor(f32(sequence) * f32(1.5))", "768", "yes"),
    (AT_MOST, "0", "floor(f32(h) * f32(0.5))", "yes"),
    (AT_MOST, "1", "ceil(f32(sequence) / f32(7.0))", "yes"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "a", "b", "expected"), QUESTIONS)
def test_answers(question: str, a: str, b: str, expected: str) -> None:
    answer = getattr(ASSUMED, question)(parse_size(a), parse_size(b))
    assert answer is Answer(expected)
