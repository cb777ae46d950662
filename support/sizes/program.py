"""Sizes as a list of steps, for files and for the native runtime, which computes them in int64.

A step is (operation, a, b, c): indices of earlier steps, or values as `Operation` says. Sizes share
the steps of common subexpressions. Every sum and product is checked: a step *fails* if its value
does not fit into 64 bits, if it divides by zero, or if it converts a float without an integer
value. Steps that use a failed step fail too, except for the operand that a select does not choose.
`run` does the same as `runtime/native/src/sizes.c` to the bit; `evaluation.evaluate` is exact, and
has the same value wherever this has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from braid.support.sizes.expression import Atom, Extent, SizeError, Symbol, terms_of
from braid.support.sizes.operators import Extreme, FloorDiv, Select
from braid.support.sizes.scalars import (
    Rounded,
    Scalar,
    compute,
    float_of,
    to_integer,
    to_width,
    value_of,
)

Step: TypeAlias = tuple[int, int, int, int]
WORDS = 4
"""Integers of a step."""
MOST_STEPS = 1 << 20


class Operation(IntEnum):
    """The computation of a step; those with FLOAT give floats, on which later steps compute."""

    OVERFLOW = 0
    """Fails: a number that has no 64 bits."""
    NUMBER = 1
    """a itself."""
    SYMBOL = 2
    """The value of symbol a."""
    ADD = 3
    MULTIPLY = 4
    FLOORDIV = 5
    MINIMUM = 6
    MAXIMUM = 7
    SELECT_ZERO = 8
    """b where a is zero, else c."""
    SELECT_NOT_POSITIVE = 9
    """b where a is zero or less, else c."""
    FLOAT_OF = 10
    """An integer, rounded to c bits; all floats are kept as f64."""
    FLOAT_NUMBER = 11
    """The f64 whose bits are a."""
    FLOAT_ADD = 12
    """Rounded to c bits, as all that follow."""
    FLOAT_SUB = 13
    FLOAT_MUL = 14
    FLOAT_DIV = 15
    FLOAT_SQRT = 16
    FLOAT_FLOOR = 17
    FLOAT_CEIL = 18
    FLOAT_ROUND = 19
    FLOAT_TRUNC = 20
    FLOAT_CONVERT = 21
    FLOOR = 22
    """The integer that a float is rounded to."""
    CEIL = 23
    ROUND = 24
    TRUNC = 25


class Failure(IntEnum):
    """The reason why a size has no value of 64 bits."""

    OVERFLOW = 1
    DIVISION_BY_ZERO = 2
    NO_INTEGER = 3
    """A float is not finite, or too large."""


_OPERANDS: Mapping[Operation, str] = {
    **{operation: "ff" for operation in Operation if Operation.FLOAT_ADD <= operation <= 15},
    **{operation: "f" for operation in Operation if operation >= Operation.FLOAT_SQRT},
    **{operation: "ii" for operation in Operation if Operation.ADD <= operation <= 7},
    Operation.OVERFLOW: "",
    Operation.NUMBER: "",
    Operation.SYMBOL: "",
    Operation.SELECT_ZERO: "iii",
    Operation.SELECT_NOT_POSITIVE: "iii",
    Operation.FLOAT_OF: "i",
    Operation.FLOAT_NUMBER: "",
}
"""The kinds of operands: which of a, b and c are numbers of steps, with floats or integers."""


@dataclass(frozen=True)
class Program:
    """The steps of some sizes: `results` are the numbers of their last steps, in order."""

    symbols: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def run(self, values: Mapping[str, int]) -> list[int | Failure]:
        """Return the value of each size at these values of symbols, or the reason why it has none.

        Raises `SizeError` where a symbol has no value of 64 bits.
        """
        given: list[int] = []
        for name in self.symbols:
            if name not in values or not is_int64(values[name]):
                raise SizeError(f"size '{name}' has no value of 64 bits")
            given.append(values[name])
        found: list[int | float | Failure] = []
        for step in self.steps:
            found.append(_run_step(step, found, given))
        results = (found[result] for result in self.results)
        return [result for result in results if not isinstance(result, float)]

    def words(self) -> list[int]:
        """Return the steps as integers, `WORDS` of each."""
        return [word for step in self.steps for word in step]


def program_of(extents: Sequence[Extent]) -> Program:
    """Return the program that computes sizes and numbers."""
    maker = _Maker()
    results = tuple(maker.extent(extent) for extent in extents)
    return Program(tuple(maker.symbols), tuple(maker.steps), results)


def program_from(symbols: Sequence[str], words: Sequence[int], results: Sequence[int]) -> Program:
    """Return the program that a file has. Raises `SizeError` if it is malformed."""
    if len(words) % WORDS or len(words) > WORDS * MOST_STEPS:
        raise SizeError(
            f"a program of sizes has {len(words)} words, expected {WORDS} for each of at most "
            f"{MOST_STEPS} steps"
        )
    steps = [_step(words[at : at + WORDS]) for at in range(0, len(words), WORDS)]
    for number in range(len(steps)):
        _check_step(number, steps, len(symbols))
    for result in results:
        if not 0 <= result < len(steps) or _gives_float(steps[result]):
            raise SizeError(f"a program of {len(steps)} steps has no size at step {result}")
    return Program(tuple(symbols), tuple(steps), tuple(results))


def _step(words: Sequence[int]) -> Step:
    operation, a, b, c = words
    if operation not in Operation.__members__.values() or not all(map(is_int64, words)):
        raise SizeError(f"a program of sizes has the step {list(words)}, which means nothing")
    return operation, a, b, c


def _check_step(number: int, steps: Sequence[Step], symbols: int) -> None:
    operation, *operands = steps[number]
    expected = _OPERANDS[Operation(operation)]
    is_right = operation != Operation.SYMBOL or 0 <= operands[0] < symbols
    has_width = Operation.FLOAT_ADD <= operation <= Operation.FLOAT_CONVERT
    if has_width or operation == Operation.FLOAT_OF:
        is_right = is_right and operands[2] in (32, 64)
    for kind, operand in zip(expected, operands, strict=False):
        is_right = is_right and 0 <= operand < number
        is_right = is_right and _gives_float(steps[operand]) == (kind == "f")
    if not is_right:
        raise SizeError(f"step {number} of a program of sizes is {list(steps[number])}")


def _gives_float(step: Step) -> bool:
    return Operation.FLOAT_OF <= step[0] <= Operation.FLOAT_CONVERT


def is_int64(value: int) -> bool:
    """Return whether a number is one of 64 bits, as all are that a program computes."""
    return -(1 << 63) <= value < 1 << 63


@dataclass
class _Maker:
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    steps: dict[Step, int] = field(default_factory=dict[Step, int])
    made: dict[Atom, int] = field(default_factory=dict[Atom, int])

    def step(self, operation: Operation, a: int = 0, b: int = 0, c: int = 0) -> int:
        """Return the number of a step, one that is there if it is the same."""
        return self.steps.setdefault((int(operation), a, b, c), len(self.steps))

    def number(self, value: int) -> int:
        """Return the step of a number."""
        return self.step(Operation.NUMBER, value) if is_int64(value) else self.step(Operation(0))

    def extent(self, extent: Extent) -> int:
        """Return the step of a size."""
        found: int | None = None
        for monomial, coefficient in terms_of(extent):
            term = self.number(coefficient) if coefficient != 1 or not monomial else None
            for atom in monomial:
                factor = self.atom(atom)
                term = factor if term is None else self.step(Operation.MULTIPLY, factor, term)
            assert term is not None
            found = term if found is None else self.step(Operation.ADD, found, term)
        return self.number(0) if found is None else found

    def atom(self, atom: Atom) -> int:
        """Return the step of a factor."""
        if atom not in self.made:
            self.made[atom] = self._atom(atom)
        return self.made[atom]

    def _atom(self, atom: Atom) -> int:
        match atom:
            case Symbol(name=name):
                return self.step(Operation.SYMBOL, self.symbols.setdefault(name, len(self.symbols)))
            case FloorDiv(numerator=numerator, divisor=divisor):
                by = self.extent(divisor)
                return self.step(Operation.FLOORDIV, self.extent(numerator), by)
            case Extreme(is_max=is_max, arguments=arguments):
                first, *others = map(self.extent, arguments)
                for other in others:
                    first = self.step(
                        Operation.MAXIMUM if is_max else Operation.MINIMUM, first, other
                    )
                return first
            case Select(condition=condition, chosen=chosen, otherwise=otherwise):
                is_zero = condition.is_zero
                return self.step(
                    Operation.SELECT_ZERO if is_zero else Operation.SELECT_NOT_POSITIVE,
                    self.extent(condition.size),
                    self.extent(chosen),
                    self.extent(otherwise),
                )
            case Rounded(rounding=rounding, scalar=scalar):
                return self.step(Operation[rounding.upper()], self.scalar(scalar))
            case other:
                raise AssertionError(f"unknown atom {other}")

    def scalar(self, scalar: Scalar) -> int:
        """Return the step of a float."""
        match scalar.operation:
            case "number":
                return self.step(Operation.FLOAT_NUMBER, scalar.bits)
            case "of_size":
                return self.step(Operation.FLOAT_OF, self.extent(scalar.size), 0, scalar.width)
            case operation:
                operands = [self.scalar(operand) for operand in scalar.operands]
                a, b = (*operands, 0)[:2]
                return self.step(Operation[f"FLOAT_{operation.upper()}"], a, b, scalar.width)


def _run_step(
    step: Step, found: Sequence[int | float | Failure], given: Sequence[int]
) -> int | float | Failure:
    number, a, b, c = step
    operation = Operation(number)
    match operation:
        case Operation.OVERFLOW:
            return Failure.OVERFLOW
        case Operation.NUMBER:
            return a
        case Operation.SYMBOL:
            return given[a]
        case Operation.FLOAT_NUMBER:
            return value_of(a)
        case Operation.SELECT_ZERO | Operation.SELECT_NOT_POSITIVE:
            size = found[a]
            if isinstance(size, Failure):
                return size
            holds = size == 0 if operation == Operation.SELECT_ZERO else size <= 0
            return found[b] if holds else found[c]
        case _:
            operands = [found[at] for at, _ in zip((a, b), _OPERANDS[operation], strict=False)]
            failed = next((each for each in operands if isinstance(each, Failure)), None)
            return _computed(operation, operands, c) if failed is None else failed


def _computed(
    operation: Operation, operands: Sequence[int | float], width: int
) -> int | float | Failure:
    """Return the result of a step on operands that all have values."""
    a, b = operands[0], operands[-1]
    if operation == Operation.FLOAT_CONVERT:
        return to_width(a, width)
    if operation > Operation.FLOAT_CONVERT:
        try:
            return to_integer(operation.name.lower(), a)
        except SizeError:
            return Failure.NO_INTEGER
    if operation >= Operation.FLOAT_ADD:
        return compute(operation.name.removeprefix("FLOAT_").lower(), width, operands)
    assert isinstance(a, int) and isinstance(b, int)
    match operation:
        case Operation.ADD:
            value = a + b
        case Operation.MULTIPLY:
            value = a * b
        case Operation.MINIMUM:
            value = min(a, b)
        case Operation.MAXIMUM:
            value = max(a, b)
        case Operation.FLOORDIV:
            if b == 0:
                return Failure.DIVISION_BY_ZERO
            value = a // b
        case _:
            return float_of(a, width)
    return value if is_int64(value) else Failure.OVERFLOW
