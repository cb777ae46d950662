"""The first of a block's elements by the digits of their ranks: histograms instead of comparisons.

A pass counts the elements of each digit among those whose digits so far are those of the last one
that is wanted, and finds its next digit. It ends as soon as all that are left are wanted: mostly
before digits of indices, which order equal values. (T. Alabi et al., "Fast k-selection
algorithms for graphics processing units", 2012; J. Zhang et al., "Parallel Top-K Algorithms on
GPU", SC 2023.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    IntegerAttr,
    StringAttr,
    UnregisteredOp,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of, is_float, is_unsigned
from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.nests.shuffles import UP, shuffled

_DIGIT = 8
"""Bits."""
_BUCKETS = 1 << _DIGIT
_COUNT = 4
"""Bytes of a count of elements."""
_HISTOGRAM = _COUNT * _BUCKETS
_WARP = 32
_OWN = _BUCKETS // _WARP
"""Buckets of a lane."""
_KEY_BITS = 32
"""The bits of a rank, above those of the index."""
_ALL = (1 << 64) - 1
_ADD, _MONOTONIC = 1, 2
"""The numbers that upstream gives them (`AtomicBinOp`, `AtomicOrdering`)."""


@dataclass(frozen=True)
class Digits:
    """The digits of ranks that differ: `places` are their lowest bits, from the top.

    A rank is moved by `shift`, so that its value begins at bit 63, as a signed number or not.
    """

    shift: int
    signed: bool
    places: tuple[int, ...]

    @staticmethod
    def of(type: Attribute, extent: int) -> "Digits":
        """Return the digits of elements of this type, as stored, with indices below `extent`."""
        shift = 0 if is_float(type) else _KEY_BITS - 8 * bytes_of(type)
        index_digits = -(-extent.bit_length() // _DIGIT)
        key_digits = _KEY_BITS // _DIGIT if is_float(type) else bytes_of(type)
        keys = [64 - _DIGIT * (number + 1) for number in range(key_digits)]
        indices = [shift + _DIGIT * number for number in reversed(range(index_digits))]
        return Digits(shift, not is_unsigned(type), (*keys, *indices))

    @property
    def shared_bytes(self) -> int:
        """A histogram a pass, and the number of elements that are written."""
        return _HISTOGRAM * len(self.places) + _COUNT

    def word(self, code: Code, rank: Value) -> Value:
        """Return a rank so moved."""
        if not self.shift:
            return rank
        return code.insert(arith.ShLIOp(rank, code.number(self.shift, i64)))

    def bucket(self, code: Code, digit: Value, number: int) -> Value:
        """Return the bucket of a digit of a pass, or the digit of a bucket: buckets are in the
        order of numbers.
        """
        return code.xor(digit, _BUCKETS // 2) if self.signed and number == 0 else digit

    def between(self, number: int) -> int:
        """Return the bits between the digits of a pass and those before it, which are ones."""
        above = self.places[number - 1] if number else 64
        return _signed((1 << above) - (1 << self.places[number] + _DIGIT))


@dataclass(frozen=True)
class Selection:
    """A selection by a block: words of a thread, of which some are `inside`."""

    shared: Value
    thread: Value
    threads: int
    digits: Digits
    words: Sequence[Value]
    inside: Sequence[Value]

    def first(self, code: Code, wanted: Value, count: Value) -> Value:
        """Return the smallest word of the first `wanted` of `count`, or one between it and the
        next.
        """
        self._clear(code)
        code.barrier()
        least = -(1 << 63) if self.digits.signed else 0
        state = [code.number(least, i64), wanted, code.insert(arith.CmpiOp(wanted, count, "ult"))]
        for number in range(len(self.digits.places)):

            def narrowed(at: Code, before: Sequence[Value], number: int = number) -> list[Value]:
                return self._pass(at, number, before)

            state = _where(code, state[-1], narrowed, state)
        return state[0]

    def write(self, code: Code, limit: Value, put: Callable[[Code, int, Value], None]) -> None:
        """Call `put` with each of the thread's elements from `limit` on, and a place for it."""
        written = code.at(self.shared, _HISTOGRAM * len(self.digits.places))
        for part, (word, inside) in enumerate(zip(self.words, self.inside, strict=True)):
            within = code.insert(arith.CmpiOp(word, limit, "sge" if self.digits.signed else "uge"))

            def one(at: Code, part: int = part) -> None:
                put(at, part, _counted(at, written))

            code.choose(code.insert(arith.AndIOp(within, inside)), one)

    def _clear(self, code: Code) -> None:
        words = self.digits.shared_bytes // _COUNT

        def clear(at: Code, word: Value, _: Sequence[Value]) -> Sequence[Value]:
            at.store(at.number(0), at.at(self.shared, at.mul(word, _COUNT)), _COUNT)
            return []

        code.loop(self.thread, code.number(words), code.number(self.threads), [], clear)

    def _pass(self, code: Code, number: int, state: Sequence[Value]) -> list[Value]:
        """Return the word, how many of those left are wanted, and whether that is not all
        of them.
        """
        limit, wanted, _ = state
        place = self.digits.places[number]
        above = self.digits.places[number - 1] if number else 64
        histogram = code.at(self.shared, _HISTOGRAM * number)
        for word, inside in zip(self.words, self.inside, strict=True):
            here = inside
            if number:
                differs = _right(code, code.xor(word, limit), above)
                same = code.insert(arith.CmpiOp(differs, code.number(0, i64), "eq"))
                here = code.insert(arith.AndIOp(inside, same))

            def count(at: Code, word: Value = word) -> None:
                digit = at.insert(arith.TruncIOp(_right(at, word, place), i32))
                digit = self.digits.bucket(at, at.bits(digit, _BUCKETS - 1), number)
                _counted(at, at.at(histogram, at.mul(digit, _COUNT)))

            code.choose(here, count)
        code.barrier()
        bucket, before, among = self._last_wanted(code, histogram, wanted)
        kept, between = code.number(0, i64), code.number(self.digits.between(number), i64)
        if number:
            kept = code.bits(limit, _signed(_ALL << above & _ALL))
        digit = code.wide(self.digits.bucket(code, bucket, number))
        own = code.insert(arith.ShLIOp(digit, code.number(place, i64)))
        limit = code.insert(arith.OrIOp(code.insert(arith.OrIOp(kept, own)), between))
        wanted = code.insert(arith.SubiOp(wanted, before))
        return [limit, wanted, code.insert(arith.CmpiOp(wanted, among, "ult"))]

    def _last_wanted(self, code: Code, histogram: Value, wanted: Value) -> tuple[Value, ...]:
        """Return the bucket of the last one wanted, how many are in those above, and how many in
        it.

        Each warp finds it for itself: the lane whose buckets contain it broadcasts it.
        """
        lane = code.rem(self.thread, _WARP)
        reversed_lane = code.xor(lane, _WARP - 1)
        own = code.at(histogram, code.mul(reversed_lane, _OWN * _COUNT))
        places = [_COUNT * number for number in reversed(range(_OWN))]
        counts = [code.load(code.at(own, place), i32, _COUNT) for place in places]
        total = counts[0]
        for count in counts[1:]:
            total = code.add(total, count)
        end = total
        for distance in (1, 2, 4, 8, 16):
            other = cast(Value, shuffled(code.builder, end, distance, _WARP, UP))
            there = code.select(code.below(lane, distance), code.number(0), other)
            end = code.add(end, there)
        before = code.insert(arith.SubiOp(end, total))
        is_here = code.insert(arith.AndIOp(code.below(before, wanted), _at_most(code, wanted, end)))
        bucket, among, ended = code.mul(lane, _OWN), counts[0], before
        for count, following in pairwise(counts):
            ended = code.add(ended, count)
            goes_on = code.below(ended, wanted)
            bucket = code.add(bucket, code.insert(arith.ExtUIOp(goes_on, i32)))
            before = code.select(goes_on, ended, before)
            among = code.select(goes_on, following, among)
        (lanes,) = code.intrinsic("llvm.nvvm.vote.ballot.sync", [code.number(-1), is_here], [i32])
        (leader,) = code.intrinsic("llvm.cttz", [lanes, code.number(1, i1)], [i32])
        bucket = code.xor(bucket, _BUCKETS - 1)  # they were numbered from the last one on
        return tuple(_from_lane(code, value, leader) for value in (bucket, before, among))


def _from_lane(code: Code, value: Value, lane: Value) -> Value:
    operands = [code.number(-1), value, lane, code.number(_WARP - 1)]
    return code.intrinsic("llvm.nvvm.shfl.sync.idx.i32", operands, [i32])[0]


def _at_most(code: Code, a: Value, b: Value) -> Value:
    return code.insert(arith.CmpiOp(a, b, "ule"))


def _right(code: Code, word: Value, bits: int) -> Value:
    return code.insert(arith.ShRUIOp(word, code.number(bits, i64)))


def _signed(number: int) -> int:
    """Return 64 bits as a signed number."""
    return number - (1 << 64) if number >> 63 else number


def _counted(code: Code, counter: Value) -> Value:
    """Add 1 atomically to a counter in shared memory, and return its previous value."""
    add = UnregisteredOp.with_name("llvm.atomicrmw").create(
        operands=[counter, code.number(1)],
        result_types=[i32],
        attributes={
            "bin_op": IntegerAttr(_ADD, i64),
            "ordering": IntegerAttr(_MONOTONIC, i64),
            "syncscope": StringAttr("block"),
        },
    )
    return code.insert(add)


def _where(
    code: Code,
    condition: Value,
    then: Callable[[Code, Sequence[Value]], Sequence[Value]],
    before: Sequence[Value],
) -> list[Value]:
    """Return what `then` makes of values, or these where the condition, the same for all, fails."""
    inside = Block()
    made = then(Code(Builder(InsertPoint.at_end(inside))), before)
    inside.add_op(scf.YieldOp(*made))
    types = [value.type for value in before]
    choice = scf.IfOp(condition, types, [inside], [Block([scf.YieldOp(*before)])])
    return list(code.builder.insert(choice).results)
