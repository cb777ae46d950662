"""Runs pipelines: the one loop of `braid-opt`, the `braid` command and the Python API."""

from collections.abc import Sequence
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from braid.analysis.structure.clusters import (
    complete_clusters,
    has_clusters,
    verify_clusters,
)
from braid.analysis.structure.verification import InvalidIRError, verify_module
from braid.passes.infrastructure.decision_checks import WrongClaimError, apply_checked
from braid.passes.infrastructure.instrumentation import Instrumentation
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.distribution import missing_package
from braid.support.errors import BraidError, was_interrupted


class PassCrashError(Exception):
    """A pass has a bug: it raised something that is not a diagnostic, left invalid IR, or claims
    of its decision what does not hold (see `verifying_decisions`).

    `index` is the position of `failed` among the passes; the cause is the original exception.
    `reproducer` is the file that shows it again, where somebody has written one.
    """

    reproducer: Path | None = None

    def __init__(self, failed: ModulePass, index: int, cause: Exception) -> None:
        super().__init__(f"pass '{failed.name}' crashed: {_summary(cause)}")
        self.failed = failed
        self.index = index
        self.is_wrong_claim = isinstance(cause, WrongClaimError)


def run_pipeline(
    context: Context,
    module: ModuleOp,
    pipeline: str | Sequence[ModulePass],
    *,
    instrumentation: Sequence[Instrumentation] = (),
    verify: bool = True,
) -> None:
    """Run `pipeline`, passes or their textual form, on `module` in place.

    With `verify`, the module is checked after every pass; it is taken to be valid before the first.
    If ops have cluster ids, ops that a pass inserted get them, and all ids are checked. Raises the
    `BraidError` that a pass raises, unchanged, and `PassCrashError` for everything else; the module
    is then in an unspecified state.
    """
    passes = parse_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    if clustered := has_clusters(module):
        complete_clusters(module)
        verify_clusters(module)
    for index, pass_ in enumerate(passes):
        for watcher in instrumentation:
            watcher.before_pass(pass_, module)
        try:
            _run_pass(context, module, pass_, index, instrumentation, verify, clustered)
        except Exception:
            for watcher in instrumentation:
                watcher.after_failed_pass(pass_, module)
            raise


def _run_pass(
    context: Context,
    module: ModuleOp,
    pass_: ModulePass,
    index: int,
    instrumentation: Sequence[Instrumentation],
    verify: bool,
    clustered: bool,
) -> None:
    try:
        apply_checked(context, module, pass_)
        if clustered and has_clusters(module):
            complete_clusters(module)
            verify_clusters(module)
    except InvalidIRError as error:
        raise PassCrashError(pass_, index, error) from error
    except BraidError:
        raise
    except RecursionError as error:
        raise BraidError(
            f"pass '{pass_.name}' cannot go through a module that is nested so deeply",
            hint="write inner regions as functions, and long expressions in parts",
        ) from error
    except PassFailedException as error:
        raise BraidError(f"pass '{pass_.name}' failed: {error}") from error
    except Exception as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from error
        if isinstance(error, ModuleNotFoundError):
            missing = missing_package(error, f"pass '{pass_.name}'")
            if missing is not None:
                raise missing from error
        raise PassCrashError(pass_, index, error) from error
    for watcher in instrumentation:
        watcher.after_pass(pass_, module)
    if not verify:
        return
    try:
        verify_module(module)
    except InvalidIRError as error:
        raise PassCrashError(pass_, index, error) from error
    for watcher in instrumentation:
        watcher.after_verify(module)


def _summary(cause: Exception) -> str:
    if isinstance(cause, InvalidIRError):
        return f"it left invalid IR: {cause.message}"
    if isinstance(cause, WrongClaimError):
        return f"it claims what does not hold: {cause}"
    first_line = next(iter(str(cause).splitlines()), "")
    return f"{type(cause).__name__}: {first_line}" if first_line else type(cause).__name__
