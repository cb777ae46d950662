"""The command: `python -m benchmarks.conformance [--executor interpret,compile] [PATTERN…]`."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.arguments import no_case, output_file
from benchmarks.conformance.cases import KINDS, Case, load_cases
from benchmarks.conformance.executors import EXECUTORS
from benchmarks.conformance.expectations import write_expected
from benchmarks.conformance.outcomes import Outcome, Status
from benchmarks.conformance.peers import missing_module
from benchmarks.conformance.records import read_records, recorded
from benchmarks.conformance.samples import sample
from benchmarks.conformance.workers import run_in_workers
from benchmarks.provenance import commit

GROUPS: dict[str, Callable[[Case], bool]] = {
    "all": lambda case: True,
    "static": lambda case: case.is_static,
    "core": lambda case: case.is_core,
}
"""All cases, those with static shapes, and those with common types besides."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conformance", description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of cases, with *")
    parser.add_argument(
        "--executor", default="interpret", help=f"some of {','.join(EXECUTORS)} (default interpret)"
    )
    parser.add_argument("--peer", default="", help="as --executor, run after it")
    parser.add_argument("--kind", default="node", help=f"some of {','.join(KINDS)}")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120, help="time for one case")
    parser.add_argument("--verbose", action="store_true", help="list every case that fails")
    parser.add_argument("--json", type=output_file, help="file for every executor's counts")
    parser.add_argument("--group", choices=GROUPS, default="all", help="cases to run")
    parser.add_argument("--sample", type=int, help="a fixed sample of so many cases")
    parser.add_argument("--records", type=Path, help="append each outcome to a JSON Lines file")
    parser.add_argument(
        "--resume", action="store_true", help="leave out cases recorded for this commit"
    )
    parser.add_argument(
        "--update", action="store_true", help="rewrite unsupported.txt from this (complete) run"
    )
    options = parser.parse_args(arguments)
    options.executors = [n for n in f"{options.executor},{options.peer}".split(",") if n]
    options.kinds = options.kind.split(",")
    for name, known in (("executors", EXECUTORS), ("kinds", KINDS)):
        if unknown := set(getattr(options, name)) - set(known):
            parser.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(known)}")
    chosen = (options.patterns, options.kinds, options.group, options.sample)
    if options.update and chosen != (["*"], ["node"], "all", None):
        parser.error("--update takes all node tests: no patterns, kinds, groups or samples")
    if options.resume and options.records is None:
        parser.error("--resume reads the file of --records, which is not given")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    cases = load_cases(options.kinds)
    matching = [name for name in cases if any(fnmatch(name, p) for p in options.patterns)]
    if not matching:
        print(no_case(" ".join(options.patterns), list(cases)), file=sys.stderr)
        return 1
    names = sample([n for n in matching if GROUPS[options.group](cases[n])], options.sample)
    failed = False
    tables: dict[str, Any] = {}
    for executor in options.executors:
        if module := missing_module(executor):
            print(f"{executor}: cannot run here: '{module}' is not installed")
            continue
        outcomes = run(names, executor, options)
        report(executor, cases, outcomes, options.verbose)
        tables[executor] = table(cases, outcomes)
        if options.json:  # after each: a peer may take an hour
            options.json.write_text(json.dumps(tables, indent=2) + "\n")
        failed |= any(outcome.status == Status.FAILED for outcome in outcomes)
        if options.update and executor == "interpret":
            write_expected(outcomes)
    return int(failed)


def run(names: Sequence[str], executor: str, options: argparse.Namespace) -> list[Outcome]:
    """Return the outcomes of the cases, some of them from an earlier run; records the others."""
    known: dict[str, Outcome] = {}
    if options.resume:
        known = read_records(options.records, commit(), executor)
    pending = [name for name in names if name not in known]
    outcomes = run_in_workers(
        pending, executor, options.kinds, jobs=options.jobs, seconds=options.seconds
    )
    if options.records:
        outcomes = recorded(outcomes, options.records, commit(), executor)
    found = known | {outcome.name: outcome for outcome in outcomes}
    return [found[name] for name in names]


def report(
    executor: str, cases: dict[str, Case], outcomes: Sequence[Outcome], verbose: bool
) -> None:
    """Print totals, then what did not pass by op (or reason by reason and case by case)."""
    groups = groups_of(cases, outcomes)
    print(f"{executor}: " + "; ".join(f"{name} {summary(g)}" for name, g in groups.items()))
    others = [outcome for outcome in outcomes if outcome.status != Status.PASSED]
    for (status, ops), count in Counter(
        (outcome.status, " ".join(cases[outcome.name].ops[:4])) for outcome in others
    ).most_common():
        print(f"  {count:4} {status} {ops}")
    if verbose:
        for outcome in others:
            print(f"  {outcome.name}: {outcome.status}: {outcome.reason}")


def groups_of(cases: dict[str, Case], outcomes: Sequence[Outcome]) -> dict[str, Sequence[Outcome]]:
    """Return the outcomes by group."""
    return {
        group: [outcome for outcome in outcomes if belongs(cases[outcome.name])]
        for group, belongs in GROUPS.items()
    }


def table(cases: dict[str, Case], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the counts by group and status, and the reason of every case that did not pass."""
    counts = {
        name: {str(status): sum(o.status == status for o in group) for status in Status}
        for name, group in groups_of(cases, outcomes).items()
    }
    others = [outcome for outcome in outcomes if outcome.status != Status.PASSED]
    return counts | {"others": {o.name: f"{o.status}: {o.reason}" for o in others}}


def summary(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.status for outcome in outcomes)
    share = 100 * counts[Status.PASSED] / max(len(outcomes), 1)
    rest = ", ".join(f"{counts[status]} {status}" for status in list(Status)[1:])
    return f"{counts[Status.PASSED]} of {len(outcomes)} passed ({share:.1f} %), {rest}"


if __name__ == "__main__":
    sys.exit(main())
