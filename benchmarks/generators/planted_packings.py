"""Buffers that are known to fit: the rectangle of capacity × time, cut into pieces."""

from dataclasses import dataclass
from random import Random

from braid.solvers.packing import Buffer

CAPACITY = 1 << 20
HORIZON = 1 << 20
BYTES = 1024
"""Sizes are multiples of it."""
TICKS = 4096
"""Lifetimes begin and end at multiples of it: many do together."""

_SPIRAL = 0.25
"""Share of the cuts that no straight cut through the piece begins with."""


@dataclass(frozen=True)
class _Piece:
    begin: int
    end: int
    low: int
    high: int

    @property
    def area(self) -> float:
        return (self.end - self.begin) / TICKS * (self.high - self.low) / BYTES


@dataclass(frozen=True)
class PlantedPacking:
    """Buffers and offsets with which they fit into `capacity` bytes."""

    buffers: tuple[Buffer, ...]
    offsets: tuple[int, ...]
    capacity: int


def planted_packing(
    count: int,
    seed: int,
    *,
    guillotine: bool = False,
    holes: float = 0.0,
    capacity: int = CAPACITY,
    horizon: int = HORIZON,
) -> PlantedPacking:
    """Return about `count` buffers that fill capacity × time but for a share `holes` of them.

    Without `guillotine`, a quarter of the cuts are spirals of five pieces, that no cut from edge
    to edge takes apart. How long and how high pieces are varies with the seed.
    """
    random = Random(seed)
    slender = random.choice((0.35, 0.5, 0.65))
    pieces = [_Piece(0, horizon, 0, capacity)]
    wanted = round(count / (1 - holes))
    done: list[_Piece] = []
    while pieces and len(pieces) + len(done) < wanted:
        weights = [piece.area**0.7 for piece in pieces]
        piece = pieces.pop(random.choices(range(len(pieces)), weights)[0])
        cut = _cut(piece, random, slender, guillotine)
        if cut:
            pieces += cut
        else:
            done.append(piece)
    pieces += done
    random.shuffle(pieces)
    pieces = sorted(pieces[: len(pieces) - round(holes * len(pieces))], key=lambda p: p.begin)
    buffers = tuple(Buffer(p.begin, p.end, p.high - p.low) for p in pieces)
    return PlantedPacking(buffers, tuple(p.low for p in pieces), capacity)


def _between(random: Random, low: int, high: int, step: int) -> int:
    """Return a multiple of `step` strictly between, more often near the ends than in the middle."""
    places = (high - low) // step - 1
    share = random.betavariate(0.8, 0.8)
    return low + step * (1 + min(int(share * places), places - 1))


def _cut(piece: _Piece, random: Random, slender: float, guillotine: bool) -> list[_Piece]:
    """Return the pieces of a piece, none where it is too small."""
    steps_t = (piece.end - piece.begin) // TICKS
    steps_b = (piece.high - piece.low) // BYTES
    if not guillotine and min(steps_t, steps_b) >= 3 and random.random() < _SPIRAL:
        return _spiral(piece, random)
    if steps_t >= 2 and (steps_b < 2 or random.random() < slender):
        at = _between(random, piece.begin, piece.end, TICKS)
        return [
            _Piece(piece.begin, at, piece.low, piece.high),
            _Piece(at, piece.end, piece.low, piece.high),
        ]
    if steps_b >= 2:
        at = _between(random, piece.low, piece.high, BYTES)
        return [
            _Piece(piece.begin, piece.end, piece.low, at),
            _Piece(piece.begin, piece.end, at, piece.high),
        ]
    return []


def _spiral(piece: _Piece, random: Random) -> list[_Piece]:
    """Four pieces around a fifth, turning either way."""
    t0 = _between(random, piece.begin, piece.end - TICKS, TICKS)
    t1 = _between(random, t0, piece.end, TICKS) if piece.end - t0 > TICKS else t0 + TICKS
    b0 = _between(random, piece.low, piece.high - BYTES, BYTES)
    b1 = _between(random, b0, piece.high, BYTES) if piece.high - b0 > BYTES else b0 + BYTES
    t1, b1 = min(t1, piece.end - TICKS), min(b1, piece.high - BYTES)
    if t1 <= t0 or b1 <= b0:
        return []
    middle = _Piece(t0, t1, b0, b1)
    if random.random() < 0.5:
        return [
            _Piece(piece.begin, t1, piece.low, b0),
            _Piece(t1, piece.end, piece.low, b1),
            _Piece(t0, piece.end, b1, piece.high),
            _Piece(piece.begin, t0, b0, piece.high),
            middle,
        ]
    return [
        _Piece(piece.begin, t0, piece.low, b1),
        _Piece(piece.begin, t1, b1, piece.high),
        _Piece(t1, piece.end, b0, piece.high),
        _Piece(t0, piece.end, piece.low, b0),
        middle,
    ]
