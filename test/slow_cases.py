"""The cases that `make slow` runs and `make test` leaves out since they take long: a table.

`slow_cases.txt` has a case a line, as pytest names it. It is made from the times of a whole run,
of `make test` and `make slow` on a quiet machine:

    python -m pytest -n auto --dist loadfile --durations=0 -vv > build/durations.txt
    python test/slow_cases.py build/durations.txt

Tests that are marked `slow` in their file are slow whatever they take.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

TABLE = Path(__file__).with_suffix(".txt")

LONG = 0.9
"""Seconds of a case from which on it is slow, if its function and file have quicker ones."""

ONLY_OF_FUNCTION = 2.0
"""Seconds that the quickest case of a function may take in `make test`."""

ONLY_OF_FILE = 12.0
"""Seconds that the quickest case of a file may take in `make test`."""

ALWAYS = frozenset(
    (
        "test/docs/test_docs.py::test_examples_run[README.md]",
        "test/docs/test_docs.py::test_examples_run[docs/getting-started.md]",
        "test/fuzz/test_invalid_models.py::test_what_compiles_stays_within_its_buffers",
        "test/unit/lowering/test_emitted_record.py::test_small_models_become_what_they_did",
        "test/unit/test_arrows.py::test_packages_import_along_their_arrows",
        "test/unit/test_runtime_wheel.py::test_runs_with_numpy_alone",
    )
)
"""Cases that `make test` has whatever they take: nothing else shows what they show."""

_DURATION = re.compile(r"\s*([\d.]+)s call\s+(\S.*)")


def slow_cases() -> frozenset[str]:
    """Return the cases of the table."""
    return frozenset(TABLE.read_text(encoding="utf-8").splitlines())


def read_durations(lines: Iterable[str]) -> dict[str, float]:
    """Return the seconds of each case from what `pytest --durations=0 -vv` prints.

    Fixtures do not count: most are shared, and another case of the file would wait for them.
    """
    found = (_DURATION.fullmatch(line.rstrip("\n")) for line in lines)
    return {match[2]: float(match[1]) for match in found if match}


def choose(seconds: Mapping[str, float]) -> set[str]:
    """Return the cases that take long, but for the quickest of their function or of their file."""
    slow = {case for case, taken in seconds.items() if taken > LONG} - ALWAYS
    for length, limit in (("[", ONLY_OF_FUNCTION), ("::", ONLY_OF_FILE)):
        groups: dict[str, list[str]] = defaultdict(list)
        for case in seconds:
            groups[case.partition(length)[0]].append(case)
        slow -= {case for group in groups.values() for case in _only(group, slow, seconds, limit)}
    return slow


def _only(
    group: Collection[str], slow: Collection[str], seconds: Mapping[str, float], limit: float
) -> set[str]:
    """Return the quickest case of a group that is slow as a whole, if it takes `limit` at most."""
    quickest = min(group, key=lambda case: (seconds[case], case))
    is_kept = all(case in slow for case in group) and seconds[quickest] <= limit
    return {quickest} if is_kept else set()


def main() -> None:
    with Path(sys.argv[1]).open(encoding="utf-8") as file:
        seconds = read_durations(file)
    slow = choose(seconds)
    TABLE.write_text("".join(f"{case}\n" for case in sorted(slow)), encoding="utf-8")
    left = sum(taken for case, taken in seconds.items() if case not in slow)
    print(f"{len(slow)} of {len(seconds)} cases are slow; the others take {left:.0f} s")


if __name__ == "__main__":
    main()
