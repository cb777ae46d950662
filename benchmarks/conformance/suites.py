"""The suites of StableHLO and IREE: `python -m benchmarks.conformance.suites FOLDER`.

FOLDER holds checkouts, or parts of them, at any depth: of openxla/stablehlo the folders
`stablehlo/tests/interpret` and `stablehlo/testdata` (programs that JAX wrote), of iree-org/iree
`tests/e2e/stablehlo_ops`, `tests/e2e/tosa_ops` and `tests/e2e/linalg`.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arguments import output_file
from benchmarks.case_process import READY, CaseLost, CaseProcess, run_side_by_side
from benchmarks.conformance.checks import Check, Program, programs_in, results_of
from benchmarks.conformance.outcomes import Outcome, Status
from benchmarks.conformance.runners import RUNNERS, missing_runner
from benchmarks.conformance.samples import sample
from benchmarks.provenance import commit
from braid.support.errors import BraidError, UnsupportedError

SUITES = {
    "StableHLO's interpreter": "stablehlo/tests/interpret",
    "JAX's programs": "stablehlo/testdata",
    "IREE's StableHLO": "tests/e2e/stablehlo_ops",
    "IREE's TOSA": "tests/e2e/tosa_ops",
    "IREE's linalg": "tests/e2e/linalg",
}
"""The suites, and where they are in the repositories that hold them."""
_TOLERANCES = {"float64": 1.01e-4, "float32": 1.01e-4, "float16": 4e-3, "bfloat16": 3e-2}
"""Tolerances of checks that allow for rounding, relative to the largest number expected above 1.

The tolerances of f32 and f64 are those of StableHLO and IREE, 0.0001, since constants have as few
digits.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that are there by each executor; print counts, and keep them as JSON."""
    options = _parse(arguments)
    suites = {name: files for name in SUITES if (files := _files(options.folder, SUITES[name]))}
    if not suites:
        known = ", ".join(SUITES.values())
        print(f"'{options.folder}' has no suite, expected one of {known}", file=sys.stderr)
        return 1
    tables = _read(options.json)
    for executor in options.executor.split(","):
        if (module := missing_runner(executor)) is not None:
            print(f"{executor}: cannot run here: '{module}' is not installed")
            continue
        for suite, files in suites.items():
            if not RUNNERS[executor].takes(SUITES[suite]):
                continue
            outcomes = list(_run(executor, files, options))
            _report(executor, suite, outcomes, options.verbose)
            tables.setdefault(suite, {})[executor] = _table(outcomes)
            if options.json is not None:  # after each: a suite may take an hour
                options.json.write_text(json.dumps(tables, indent=2) + "\n")
    return 0


def _read(file: Path | None) -> dict[str, Any]:
    """Return the counts in a file, to which those of other executors are added."""
    return json.loads(file.read_text()) if file is not None and file.exists() else {}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.conformance.suites", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="folder with the suites")
    parser.add_argument("--executor", default="compile", help=f"some of {','.join(RUNNERS)}")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="time for one case")
    parser.add_argument(
        "--sample", type=int, help="the number of cases of each suite in a fixed sample"
    )
    parser.add_argument("--verbose", action="store_true", help="list every case that fails")
    parser.add_argument("--json", type=output_file, help="file to keep the counts in")
    options = parser.parse_args(arguments)
    if unknown := set(options.executor.split(",")) - set(RUNNERS):
        parser.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(RUNNERS)}")
    return options


def _files(folder: Path, place: str) -> list[Path]:
    """Return the tests of a suite, which may be in a checkout inside of the folder."""
    inside = (f for f in folder.rglob("*.mlir") if f.parent.as_posix().endswith(f"/{place}"))
    return sorted(inside)


def _run(executor: str, files: Sequence[Path], options: argparse.Namespace) -> Iterator[Outcome]:
    """Yield the outcome of each test function, run in processes that may die."""
    tests: dict[str, Program] = {}
    for file in files:
        for found in programs_in(file.stem, file.read_text(encoding="utf-8")):
            if isinstance(found, Program):
                tests[found.name] = found
            else:
                yield Outcome(found[0], Status.UNSUPPORTED, found[1])
    names = sample(list(tests), options.sample)
    workers = [CaseProcess(_serve, (executor,)) for _ in range(min(options.jobs, len(names)))]
    requests = [tests[name] for name in names]
    for _, test, answer in run_side_by_side(workers, requests, options.seconds):
        lost = isinstance(answer, CaseLost)
        yield Outcome(test.name, Status.FAILED, str(answer)) if lost else answer


def _serve(channel: Connection, executor: str) -> None:
    channel.send(READY)
    while (test := channel.recv()) is not None:
        channel.send(run_test(test, executor))


def run_test(test: Program, executor: str) -> Outcome:
    """Return whether a test passes; never raises."""
    try:
        results = RUNNERS[executor].run(test.text)
        difference = _difference(test.checks, results)
    except UnsupportedError as error:
        return Outcome(test.name, Status.UNSUPPORTED, error.message)
    except BraidError as error:
        return Outcome(test.name, Status.UNSUPPORTED, error.message)
    except Exception as error:  # a peer's refusal, or a bug
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        kind = Status.UNSUPPORTED if RUNNERS[executor].is_peer else Status.FAILED
        return Outcome(test.name, kind, reason[:300])
    status = Status.PASSED if difference is None else Status.FAILED
    return Outcome(test.name, status, difference or "")


def _difference(checks: Sequence[Check], results: Sequence[Any]) -> str | None:
    """Return what is wrong with results, None if every check holds."""
    if len(results) != results_of(checks):
        return f"{len(results)} results, expected {results_of(checks)}"
    arrays = iter(np.asarray(result) for result in results)
    for number, check in enumerate(checks):
        own = [next(arrays) for _ in range(check.results)]
        half = len(own) // 2
        for value, expected in zip(own[:half], own[half:], strict=True):
            if (error := _error(value, expected, check)) is not None:
                return f"check {number}: {error}"
    return None


def _error(value: NDArray[Any], expected: NDArray[Any], check: Check) -> str | None:
    if (value.shape, value.dtype) != (expected.shape, expected.dtype):
        return f"{value.dtype}{list(value.shape)}, expected {expected.dtype}{list(expected.shape)}"
    is_exact = check.is_exact or value.dtype.kind in "iub"
    kind = str(value.dtype)
    value, expected = value.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    bound = 0.0 if is_exact else _TOLERANCES.get(kind, 0.1) * max(1.0, finite.max(initial=0.0))
    if check.tolerance is not None:
        bound = check.tolerance * 1.001  # of which the decimals are rounded
    if np.allclose(value, expected, rtol=0, atol=bound, equal_nan=True):
        return None
    with np.errstate(invalid="ignore"):
        return f"differs by up to {np.nanmax(np.abs(value - expected)):.3g}"


def _report(executor: str, suite: str, outcomes: Sequence[Outcome], verbose: bool) -> None:
    counts = _counts(outcomes)
    print(f"{suite}, {executor}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    others = [outcome for outcome in outcomes if outcome.status != Status.PASSED]
    for (status, reason), count in Counter((o.status, o.reason) for o in others).most_common():
        if not verbose and count > 1:
            print(f"  {count:4} {status}: {reason}")
    for outcome in others if verbose else ():
        print(f"  {outcome.name}: {outcome.status}: {outcome.reason}")
    sys.stdout.flush()


def _counts(outcomes: Sequence[Outcome]) -> Mapping[str, int]:
    return {str(status): sum(o.status == status for o in outcomes) for status in Status}


def _table(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    others = sorted(_reasons(outcomes))
    return {"commit": commit(), **_counts(outcomes), "others": dict(others)}


def _reasons(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str]]:
    for outcome in outcomes:
        if outcome.status != Status.PASSED:
            yield outcome.name, f"{outcome.status}: {outcome.reason}"


if __name__ == "__main__":
    sys.exit(main())
