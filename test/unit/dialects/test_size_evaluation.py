"""Sizes that models compute of shapes are compared with what the ops compute of numbers."""

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue
from xdsl.utils.test_value import create_ssa_value

from braid.dialects.braid.base import TensorOp, tensor_type
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import as_array, evaluate_sizes, is_sized
from braid.support.sizes.assumptions import Assumed, Assumptions
from braid.support.sizes.expression import Extent, Size, Symbol, substitute, symbol
from braid.support.sizes.reading import parse_size

ARITHMETIC = ("add", "sub", "mul", "maximum", "minimum")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGIC = ("and", "or", "xor")
KNOWN = Assumptions.of({"a": Assumed(minimum=3), "b": Assumed(minimum=1, maximum=9)})
NUMBERS, BOOLS = tensor_type(i64, []), tensor_type(i1, [])


def numbered(element: Extent, values: dict[str, int]) -> int:
    if not isinstance(element, Size):
        return int(element)
    found = substitute(element, {Symbol(name): value for name, value in values.items()})
    assert isinstance(found, int)
    return found


def at(array: Array, values: dict[str, int], type: object) -> Array:
    """Return a value of sizes at these values of the symbols."""
    kind = np.bool_ if type == BOOLS else np.int64
    return np.array(numbered(array.reshape(-1)[0], values), kind)


class Program:
    """Random ops on two sizes: their values as sizes, and at sampled values of the symbols."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.samples = [{"a": a, "b": b} for a in (3, 4, 7, 32) for b in (1, 2, 9)]
        self.values: list[tuple[SSAValue, Array, list[Array]]] = []
        for extent in (symbol("a"), symbol("b"), self.generator.randint(1, 5), 0, 1):
            array = as_array([extent], [])
            concrete = [at(array, each, NUMBERS) for each in self.samples]
            self.values.append((create_ssa_value(NUMBERS), array, concrete))

    def pick(self, type: object) -> tuple[SSAValue, Array, list[Array]] | None:
        found = [each for each in self.values if each[0].type == type]
        return self.generator.choice(found) if found else None

    def step(self) -> bool:
        """Add the result of a random op; return whether it was evaluated."""
        name = self.generator.choice(
            [*ARITHMETIC, "div", "rem", "sign", "neg", "select", "not", *COMPARISONS, *LOGIC]
        )
        types = {"select": (BOOLS, NUMBERS, NUMBERS), "not": (BOOLS,), "sign": (NUMBERS,)}
        types |= {"neg": (NUMBERS,)} | dict.fromkeys(LOGIC, (BOOLS, BOOLS))
        picked = [self.pick(type) for type in types.get(name, (NUMBERS, NUMBERS))]
        operands = [each for each in picked if each is not None]
        if len(operands) != len(picked) or not any(is_sized(each[1]) for each in operands):
            return False
        op = elementwise(name, *(each[0] for each in operands))
        found = evaluate_sizes(op, [each[1] for each in operands], KNOWN)
        if found is None:
            return False
        concrete = [
            self.evaluated(op, [each[2][i] for each in operands], i)
            for i in range(len(self.samples))
        ]
        if any(each is None for each in concrete):
            return False  # a division by zero
        wanted = [each for each in concrete if each is not None]
        for sample, number in zip(self.samples, wanted, strict=True):
            assert at(found[0], sample, op.results[0].type) == number, (name, found[0], sample)
        if max(abs(int(each)) for each in wanted) < 2**20:
            self.values.append((create_ssa_value(op.results[0].type), found[0], wanted))
        return True

    def evaluated(self, op: TensorOp, operands: list[Array], sample: int) -> Array | None:
        if op.name.endswith(("div", "rem")) and operands[1] == 0:
            return None
        return np.asarray(op.evaluate(*operands)[0])


@pytest.mark.parametrize("part", range(10))
def test_sizes_have_the_values_of_the_ops(part: int) -> None:
    evaluated = 0
    for seed in range(40 * part, 40 * part + 40):
        program = Program(seed)
        evaluated += sum(program.step() for _ in range(30))
    assert evaluated > 300


def floor_division(dividend: Extent, divisor: int, known: Assumptions) -> Array | None:
    """Return what JAX writes for `dividend // divisor`, on operands rounded toward zero."""
    values: dict[SSAValue, Array] = {}

    def number(extent: Extent) -> SSAValue:
        value = create_ssa_value(NUMBERS)
        values[value] = as_array([extent], [])
        return value

    def apply(name: str, *operands: SSAValue) -> SSAValue:
        op = elementwise(name, *operands)
        found = evaluate_sizes(op, [values[each] for each in operands], known)
        assert found is not None, name
        values[op.results[0]] = found[0]
        return op.results[0]

    a, b = number(dividend), number(divisor)
    quotient, rest = apply("div", a, b), apply("rem", a, b)
    unlike = apply("ne", apply("sign", rest), apply("sign", b))
    below = apply("and", unlike, apply("ne", rest, number(0)))
    return values[apply("select", below, apply("sub", quotient, number(1)), quotient)]


@pytest.mark.parametrize("divisor", [2, 3, 7])
@pytest.mark.parametrize("dividend", ["a - 3", "a", "2 * a + 5", "-a", "-a - 1", "-3 * a"])
def test_floor_division_is_a_quotient(divisor: int, dividend: str) -> None:
    size = parse_size(dividend)
    found = floor_division(size, divisor, KNOWN)
    assert found is not None
    assert found.reshape(-1)[0] == size // divisor


def test_quotients_of_what_may_be_negative_are_left_to_the_model() -> None:
    operands = [as_array([symbol("n") - 3], []), as_array([2], [])]
    op = elementwise("div", create_ssa_value(NUMBERS), create_ssa_value(NUMBERS))
    assert evaluate_sizes(op, operands) is None
