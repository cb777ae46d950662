"""The outcome of a conformance case, and the errors in its outputs."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from benchmarks.conformance.cases import Case
from benchmarks.conformance.executors import Executor
from braid.support.errors import BraidError, UnsupportedError


class Status(StrEnum):
    """The status that a case ended with."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class Outcome:
    """The outcome of case `name`; `reason` is empty if it passed."""

    name: str
    status: Status
    reason: str = ""


def run_case(case: Case, executor: Executor) -> Outcome:
    """Run all data sets of a case; never raises."""
    try:
        for inputs, expected in case.data_sets:
            outputs = executor(case.model, inputs)
            difference = first_difference(case, outputs, expected)
            if difference is not None:
                return Outcome(case.name, Status.FAILED, difference)
    except UnsupportedError as error:
        return Outcome(case.name, Status.UNSUPPORTED, error.message)
    except BraidError as error:
        return Outcome(case.name, Status.FAILED, error.message)
    except Exception as error:  # a peer, or a bug: a failure of this case alone
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return Outcome(case.name, Status.FAILED, reason)
    return Outcome(case.name, Status.PASSED)


def first_difference(case: Case, outputs: list[object], expected: list[object]) -> str | None:
    """Return what is wrong with the outputs, None if they are within the case's tolerances."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    for index, (output, reference) in enumerate(zip(outputs, expected, strict=True)):
        value, wanted = np.asarray(output), np.asarray(reference)
        if (value.shape, value.dtype) != (wanted.shape, wanted.dtype):
            return (
                f"output {index} is {value.dtype}{list(value.shape)}, expected "
                f"{wanted.dtype}{list(wanted.shape)}"
            )
        if value.dtype.kind in "OSU":
            if (value != wanted).any():
                return f"output {index} differs"
            continue
        try:
            np.testing.assert_allclose(
                value.astype(np.float64),
                wanted.astype(np.float64),
                rtol=case.rtol,
                atol=case.atol,
            )
        except AssertionError:
            error = np.nanmax(np.abs(value.astype(np.float64) - wanted.astype(np.float64)))
            return f"output {index} differs by up to {error:.3g}"
    return None
