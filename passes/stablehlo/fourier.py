"""Fourier transforms of StableHLO: a chain of `braid.fft`, whose last dim holds the parts."""

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.fourier import MOST_POINTS, FftOp
from braid.passes.stablehlo.complex_node import ComplexNode, Pair, is_complex


def fourier_transform(t: ComplexNode) -> SSAValue | Pair:
    """Transform the last dims one by one.

    The real side of a transform is its first one, or its last one.
    """
    kind, lengths = t.text("fft_type"), t.integers("fft_length")
    result = t.op.results[0]
    rank = len(shape_of(t.value(0)))
    if kind not in ("FFT", "IFFT", "RFFT", "IRFFT") or not 1 <= len(lengths) <= rank:
        t.fail(f"its type is '{kind}' and its lengths are {lengths}")
    if (kind == "RFFT") == is_complex(t.value(0)) or (kind == "IRFFT") == is_complex(result):
        t.fail(f"its type is {kind}, but it takes {t.value(0).type} to {result.type}")
    _require_lengths(t, kind, lengths)
    signal = _stacked(t, (t.value(0),) if kind == "RFFT" else t.pair(0))
    *others, last = zip(range(rank - len(lengths), rank), lengths, strict=True)
    inner = "ifft" if kind.startswith("I") else "fft"
    steps = [(inner, *each) for each in others]
    end = (kind.lower(), *last)
    for step in [end, *steps] if kind == "RFFT" else [*steps, end]:
        signal = _transformed(t, signal, *step)
    if kind == "IRFFT":
        return t.reshape_to(signal, shape_of(signal)[:-1])
    return _part(t, signal, 0), _part(t, signal, 1)


def _require_lengths(t: ComplexNode, kind: str, lengths: Sequence[int]) -> None:
    expected = list(lengths)
    if kind == "IRFFT":
        expected[-1] = lengths[-1] // 2 + 1
    actual = list(t.numbers(t.value(0)))[-len(lengths) :]
    if actual != expected or min(lengths) < 1:
        t.fail(f"its lengths are {lengths}, and the last extents {actual}, expected {expected}")
    if max(lengths) > MOST_POINTS:
        t.fail(f"its lengths are {lengths}, expected {MOST_POINTS} points at most")


def _stacked(t: ComplexNode, parts: Sequence[SSAValue]) -> SSAValue:
    """Return parts next to each other in a last dim."""
    first, *others = (t.reshape_to(part, [*shape_of(part), 1]) for part in parts)
    return t.joined(first, others[0]) if others else first


def _part(t: ComplexNode, signal: SSAValue, number: int) -> SSAValue:
    """Return the real part (0) or the imaginary one (1)."""
    return t.reshape_to(t.slice_of(signal, number, number + 1), shape_of(signal)[:-1])


def _transformed(t: ComplexNode, signal: SSAValue, kind: str, dim: int, length: int) -> SSAValue:
    """Transform one dim."""
    op = FftOp.get(signal, kind, dim, length)
    op.location = t.op.location
    Rewriter.insert_op(op, InsertPoint.before(t.op))
    return op.output
