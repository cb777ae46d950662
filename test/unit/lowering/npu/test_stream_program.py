"""Streams that run: the same results as the interpreter's, and none for those with a mistake."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from braid.lowering.npu.lower_block import lower_to_run
from braid.lowering.npu.stream_program import StreamProgram
from braid.support.errors import BraidError
from braid.targets.machines.load import load_target
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Kind, from_text, to_text
from braid.targets.simulator.stream_bytes import from_bytes, to_bytes
from test.unit.lowering.npu.random_tiles import Case, proposed_orders, random_case, tight
from test.unit.lowering.npu.stream_mutants import is_caught, mutants

CHIPS = ("npu-small", "npu-davinci")
ROOMS = (1.1, 1.3, 2.0, 8.0)


def chip(name: str) -> BackendDescription:
    return load_target(name).default_backend


def programs(
    seeds: range, candidates: int, seconds: float
) -> Iterator[tuple[Case, BackendDescription, StreamProgram]]:
    """Random functions on chips with little memory, in every order that is proposed."""
    for seed in seeds:
        case = random_case(seed, 6 + seed % 25)
        backend = tight(chip(CHIPS[seed % 2]), case.block, ROOMS[seed // 2 % len(ROOMS)])
        for order in proposed_orders(case.block, backend, candidates, seconds):
            yield case, backend, lower_to_run(case.block, backend, order)


def check_random_functions(seeds: range, candidates: int, seconds: float) -> Counter[str]:
    """Run them; count those that ran and those without addresses."""
    counts = Counter[str]()
    for case, backend, program in programs(seeds, candidates, seconds):
        counts["homeless" if program.homeless else "ran"] += 1
        if program.homeless:
            with pytest.raises(BraidError, match="does not say what its instructions read"):
                program.run(backend, case.values)
            continue
        for made, expected in zip(program.run(backend, case.values), case.expected, strict=True):
            np.testing.assert_array_equal(made, expected)
        accesses = [i.access for i in program.stream.instructions if i.access is not None]
        counts["steps"] += sum(access.steps > 1 for access in accesses)
        counts["gathers"] += sum(bool(a.tensors) and bool(a.kernel) for a in accesses)
        kinds = Counter(i.kind for i in program.stream.instructions)
        counts["spills"] += kinds[Kind.STORE] > len(case.expected)
    return counts


def test_random_functions_in_every_order() -> None:
    counts = check_random_functions(range(24), 2, 0.05)
    print(counts)
    assert counts["ran"] >= 50 and counts["homeless"] <= 0.05 * counts["ran"]
    assert min(counts["steps"], counts["gathers"], counts["spills"]) > 0


@pytest.mark.slow
def test_200_random_functions_in_every_order() -> None:
    counts = check_random_functions(range(200), 24, 0.5)
    print(counts)
    assert counts["ran"] >= 2000 and counts["homeless"] <= 0.05 * counts["ran"]


def test_addresses_survive_both_forms() -> None:
    for _, _, program in programs(range(6), 1, 0.05):
        stream = program.stream
        assert from_text(to_text(stream)) == stream == from_bytes(to_bytes(stream))


def check_mutants(seeds: range) -> Counter[str]:
    """Make mistakes in valid streams; count them by kind."""
    counts, missed = Counter[str](), list[str]()
    for seed in seeds:
        for case, backend, program in programs(range(seed, seed + 1), 1, 0.05):
            if program.homeless:
                continue
            for mutant in mutants(program.stream, Random(seed)):
                counts[mutant.kind] += 1
                if not is_caught(mutant, program, backend, case):
                    missed.append(f"seed {seed}: {mutant.kind} {mutant.what}")
            break
    assert not missed, "\n".join(missed)
    return counts


def test_mistakes_are_caught() -> None:
    counts = check_mutants(range(12))
    print(counts)
    assert counts.total() >= 40
    assert min(counts[kind] for kind in ("sync dropped", "buffer freed early")) >= 8
    assert min(counts[kind] for kind in ("address shifted", "unit swapped")) >= 8


@pytest.mark.slow
def test_many_mistakes_are_caught() -> None:
    counts = check_mutants(range(200))
    print(counts)
    assert counts.total() >= 800
