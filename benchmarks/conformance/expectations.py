"""The committed list of cases that braid does not pass."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.conformance.outcomes import Outcome, Status

FILE = Path(__file__).parent / "unsupported.txt"


def read_expected(path: Path = FILE) -> dict[str, str]:
    """Case name to the reason why it does not pass."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("\t") for line in lines if line and not line.startswith("#"))
    return {name: reason for name, _, reason in pairs}


def write_expected(outcomes: Iterable[Outcome], path: Path = FILE) -> None:
    """Write the cases that did not pass."""
    failing = sorted((o for o in outcomes if o.status != Status.PASSED), key=lambda o: o.name)
    head = "# Node tests that the interpreter does not pass, and why. Only removals are welcome.\n"
    lines = [f"{outcome.name}\t{outcome.status}: {outcome.reason}\n" for outcome in failing]
    path.write_text(head + "".join(lines), encoding="utf-8")
