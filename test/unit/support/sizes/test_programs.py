"""Sizes in C: the same values as in Python to the bit, and failures where 64 bits are too few."""

import ctypes
import itertools
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, SizeError, symbol
from braid.support.sizes.program import (
    WORDS,
    Failure,
    Operation,
    Program,
    program_from,
    program_of,
)
from braid.support.sizes.reading import parse_size
from test.unit.support.sizes.expressions import NAMES, Written, written
from test.unit.support.sizes.test_values import size_of

SOURCE = Path(__file__).parents[4] / "runtime" / "native" / "src" / "sizes.c"
EDGES = [0, 1, -1, 2, 3, 7, 2**24 + 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]


class CProgram(ctypes.Structure):
    """`braid_size_program`."""

    _fields_ = (
        ("step_count", ctypes.c_int64),
        ("steps", ctypes.POINTER(ctypes.c_int64)),
        ("symbol_count", ctypes.c_int64),
        ("result_count", ctypes.c_int64),
        ("results", ctypes.POINTER(ctypes.c_int64)),
    )


def words_of(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


class Native:
    """The functions of `sizes.c`, which traps where C does not say what happens."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("needs a C compiler")
        library = folder / "sizes.so"
        options = ["-std=c11", "-O1", "-shared", "-fPIC", "-ffp-contract=off"]
        options += ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
        subprocess.run([compiler, *options, SOURCE, "-o", library], check=True)
        self._library = ctypes.CDLL(str(library))
        self._library.braid_check_sizes.restype = ctypes.c_bool
        self._library.braid_evaluate_sizes.restype = ctypes.c_int64

    def _program(self, symbols: int, words: Sequence[int], results: Sequence[int]) -> CProgram:
        count = len(words) // WORDS
        return CProgram(count, words_of(words), symbols, len(results), words_of(results))

    def check(self, symbols: int, words: Sequence[int], results: Sequence[int]) -> bool:
        program = self._program(symbols, words, results)
        return self._library.braid_check_sizes(ctypes.byref(program))

    def run(self, program: Program, values: dict[str, int]) -> tuple[list[int], int, int]:
        """Return the sizes, why one has none, and which."""
        made = self._program(len(program.symbols), program.words(), program.results)
        given = words_of([values[name] for name in program.symbols])
        room = (ctypes.c_int64 * (2 * len(program.steps)))()
        sizes, failing = words_of([0] * len(program.results)), ctypes.c_int64(-1)
        assert self._library.braid_check_sizes(ctypes.byref(made))
        reason = self._library.braid_evaluate_sizes(
            ctypes.byref(made), given, room, sizes, ctypes.byref(failing)
        )
        return list(sizes), reason, failing.value


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Native:
    return Native(tmp_path_factory.mktemp("sizes"))


def compare(native: Native, extents: Sequence[Extent], values: dict[str, int]) -> list[Failure]:
    """Compare C, the steps in Python, and the exact values; returns what failed."""
    program = program_of(extents)
    found = program.run(values)
    sizes, reason, failing = native.run(program, values)
    failures = [(at, each) for at, each in enumerate(found) if isinstance(each, Failure)]
    assert (failing, reason) == (failures[0] if failures else (-1, 0))
    for extent, value, size in zip(extents, found, sizes, strict=True):
        if isinstance(value, Failure):
            assert size == 0
            if value is not Failure.OVERFLOW:  # of a part; the exact value may be small
                with pytest.raises(SizeError):
                    evaluate(extent, values)
        else:
            assert size == value == evaluate(extent, values)
    return [each for _, each in failures]


values = st.one_of(st.integers(-9, 40), st.sampled_from(EDGES), st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=100)
@given(st.lists(written, min_size=1, max_size=3), st.lists(values, min_size=3, max_size=3))
def test_the_same_in_c(native: Native, expressions: list[Written], point: list[int]) -> None:
    compare(native, [size_of(each) for each in expressions], dict(zip(NAMES, point, strict=True)))


@pytest.mark.parametrize(
    "text",
    [
        *("a + b", "a * b", "a floordiv b", "a ceildiv b", "a mod b", "min(a, b)", "max(a, b)"),
        *("a - b", "-a", "select(a = b, a, 3)", "select(a <= b, 2 * a, b)", "a * b floordiv 16"),
        *("floor(f32(a) * f32(b))", "ceil(f64(a) / f64(b))", "round(f64(a) * f64(0.5))"),
        *("trunc(sqrt(f32(a)))", "round(to_f64(sqrt(f32(a))) + f64(b))", "floor(f32(a) - f32(b))"),
        *("trunc(f32(a) / (f32(1.0) / f32(b)))", "ceil(floor(f32(a) / f32(3.0)) * f32(0.7))"),
    ],
)
def test_ends_of_integers(native: Native, text: str) -> None:
    failures: set[Failure] = set()
    for a, b in itertools.product(EDGES, repeat=2):
        failures |= set(compare(native, [parse_size(text)], {"a": a, "b": b}))
    if "a * b" in text or "a + b" in text:
        assert failures & {Failure.OVERFLOW, Failure.NO_INTEGER}


def test_overflow_is_reported(native: Native) -> None:
    """Also within a size whose value has 64 bits, and not in a part that is not chosen."""
    values = {"a": 2**40, "b": 1}
    assert compare(native, [parse_size("a * a")], values) == [Failure.OVERFLOW]
    assert compare(native, [parse_size("a * a floordiv a * b")], values) == []
    assert compare(native, [parse_size("min(a * a, b)")], values) == [Failure.OVERFLOW]
    assert compare(native, [parse_size("select(b = 1, 5, a * a)")], values) == []
    assert compare(native, [parse_size(f"{2**70} * b - {2**70} + b")], values)[0] == 1
    assert compare(native, [parse_size("a floordiv (b - 1)"), symbol("a")], values) == [2]


def test_shared_parts_are_one_step() -> None:
    a = parse_size("(s + 15) floordiv 16")
    program = program_of([a, a * 16, a * 16 * symbol("b"), 7])
    operations = [step[0] for step in program.steps]
    assert operations.count(Operation.FLOORDIV) == 1 and program.symbols == ("s", "b")
    assert program.run({"s": 17, "b": 3}) == [2, 32, 96, 7]
    assert program_from(program.symbols, program.words(), program.results) == program


def test_damaged_programs_are_refused(native: Native) -> None:
    """By both alike; what is accepted computes something, or fails."""
    program = program_of(
        [parse_size("select(a <= 3, a floordiv b, 2) + floor(sqrt(f32(a)) * f32(1.5))")]
    )
    generator, accepted = random.Random(0), 0
    for _ in range(2000):
        words, results = program.words(), list(program.results)
        for _ in range(generator.randrange(1, 3)):
            words[generator.randrange(len(words))] = generator.choice(
                [*range(-1, 28), 64, 2**63 - 1, -(2**63)]
            )
        results[0] = generator.choice([results[0], -1, 0, 5, len(words)])
        expected = native.check(len(program.symbols), words, results)
        try:
            damaged = program_from(program.symbols, words, results)
        except SizeError:
            assert not expected
            continue
        assert expected
        accepted += 1
        values = {"a": generator.choice(EDGES), "b": generator.choice(EDGES)}
        (found,) = damaged.run(values)
        sizes, reason, _ = native.run(damaged, values)
        assert (sizes[0], reason) == ((0, found) if isinstance(found, Failure) else (found, 0))
    assert 50 < accepted < 1950
    for words in ([1, 2, 3], [1, 2**64, 0, 0]):
        with pytest.raises(SizeError):
            program_from((), words, ())


def test_operations_are_those_of_c() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    names = re.findall(r"\w+", text.partition("enum {")[2].partition("}")[0])
    assert names == [*Operation.__members__, "OPERATION_COUNT"]
    assert [operation.value for operation in Operation] == list(range(len(Operation)))
    header = SOURCE.with_suffix(".h").read_text(encoding="utf-8")
    for failure in Failure:
        assert re.search(rf"BRAID_SIZE_{failure.name} = {failure.value},", header)
