"""Settings and fixtures of all tests that pytest runs."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from braid.passes.infrastructure.decision_checks import VARIABLE
from test.slow_cases import slow_cases

# Nothing that was measured on this machine before decides in a test.
os.environ["BRAID_CACHE_DIR"] = str(Path(__file__).parents[1] / "build" / "test" / "cache")
os.environ.pop("BRAID_RECORDS", None)
# Nor is a model kept: tests replace parts of the compiler in their process, which no key tells.
os.environ["BRAID_CACHE_LIMIT"] = "0"
# IR consists of reference cycles, and tests create so much of it that the collector, as often as by
# default, would take a fifth of the time.
gc.set_threshold(20_000, 10, 10)
# The claims of passes about their decisions are checked, in child processes too.
os.environ.setdefault(VARIABLE, "1")

# A busy machine is not a failure, and a suite run twice tries the same cases: `make fuzz` tries new
# ones.
IS_FUZZING = "BRAID_FUZZ_EXAMPLES" in os.environ
settings.register_profile(
    "braid",
    deadline=None,
    derandomize=not IS_FUZZING,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("braid")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Of `test/run/gpu`, and here since pytest takes options from the first conftests alone."""
    group = parser.getgroup("braid")
    text = "run kernels on this machine's GPU too, as this target has it"
    group.addoption("--gpu-target", metavar="TARGET", help=text)
    text = "for this architecture of it, such as sm_90a,+cubin"
    group.addoption("--gpu-arch", metavar="ARCHITECTURE", help=text)
    text = "keep kernels for another machine to run, see benchmarks.gpu_replay"
    group.addoption("--keep-gpu-cases", metavar="FOLDER", help=text)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than CPUs: tests wait for processes that hang, pages and servers."""
    return len(os.sched_getaffinity(0)) + 1


_SLOW = slow_cases()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what the table of slow cases has."""
    if item.nodeid in _SLOW:
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a table of slow cases with functions that do not exist, in files that are run as a
    whole.

    Which cases a function has may depend on the CPU of the machine.
    """
    if any("::" in argument for argument in config.args):
        return
    found = {item.nodeid.partition("[")[0] for item in items}
    files = {name.partition("::")[0] for name in found}
    absent = [
        case
        for case in sorted(_SLOW)
        if case.partition("::")[0] in files and case.partition("[")[0] not in found
    ]
    if absent:
        text = "test/slow_cases.txt has cases that there are not, remove or rename them:"
        raise pytest.UsageError("\n  ".join((text, *absent)))


def pytest_collection_finish() -> None:
    """Exempt imported objects, hundreds of MB, from the garbage collector."""
    gc.collect()
    gc.freeze()
