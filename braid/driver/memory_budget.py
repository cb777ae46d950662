"""Compiling with less memory: by thresholds or for a budget, and whether the plan keeps to it."""

from collections.abc import Sequence

from xdsl.passes import ModulePass

from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.byte_sizes import format_size, parse_size
from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError, InfeasibleError
from braid.support.memory_report import MemoryReport
from braid.support.option_names import option_text

_FUSION = "select-fusion"
"""Ops are still unfused then, and a recomputed op may be fused with its reader."""

_BEFORE = "select-storage"
"""Groups, layouts and the order with the least peak are decided then, and groups still stand."""


def parse_budget(budget: int | str) -> int:
    """Return the bytes of a budget such as `512MiB`.

    Raises:
        BraidError: it is not a size.

    """
    try:
        return parse_size(budget)
    except ValueError as error:
        raise BraidError(
            f"the memory budget {error}", hint=f"such as {option_text('memory_budget', '512MiB')}"
        ) from error


def with_thresholds(passes: Sequence[ModulePass], thresholds: str | None) -> tuple[ModulePass, ...]:
    """Return `passes` with those that recompute values above `thresholds`.

    They come before ops are fused with their readers.

    The text is that of the options of `select-rematerialization`: `tensor-threshold=64MiB`. Raises
    BraidError for an invalid budget, and for options that the pass does not have.
    """
    if thresholds is None:
        return tuple(passes)
    if any(mark in thresholds for mark in ("{", "}", "budget")):
        raise BraidError(
            f"'{thresholds}' is not a list of thresholds",
            hint="expected such as 'tensor-threshold=64MiB peak-threshold=1GiB'; for a budget give "
            f"{option_text('memory_budget')}",
        )
    place = next((i for i, p in enumerate(passes) if p.name == _FUSION), len(passes))
    select = f"select-rematerialization{{{thresholds}}},apply-rematerialization"
    return (*passes[:place], *parse_pipeline(select), *passes[place:])


def report_thresholds(with_them: Sequence[MemoryReport], without: Sequence[MemoryReport]) -> bool:
    """Report the effect of thresholds on the memory plans; return whether one became larger.

    Both measure the whole pipeline: differences in fusion and layouts count.
    """
    is_larger = False
    for more, plain in zip(with_them, without, strict=True):
        took, takes = plain.activation_bytes, more.activation_bytes
        if takes > took:
            is_larger = True
            message = (
                f"recomputation by thresholds would make @{more.function} take "
                f"{format_size(takes)} instead of {format_size(took)}; it is left out"
            )
            emit(Diagnostic("warning", message, hint="higher thresholds recompute less"))
        else:
            message = (
                f"[recompute] @{more.function} takes {format_size(takes)} as planned, instead of "
                f"{format_size(took)} without thresholds"
            )
            emit(Diagnostic("remark", message))
    return is_larger


def with_budget(passes: Sequence[ModulePass], budget: int) -> tuple[ModulePass, ...]:
    """Return `passes` with those that recompute activations beyond `budget` bytes."""
    place = next((i for i, p in enumerate(passes) if p.name == _BEFORE), len(passes))
    fit = parse_pipeline(f"select-rematerialization{{budget={budget}}},apply-rematerialization")
    return (*passes[:place], *fit, *passes[place:])


def fits(reports: Sequence[MemoryReport], budget: int) -> bool:
    """Return whether arena and outputs of every function take no more than `budget` bytes."""
    return all(report.activation_bytes <= budget for report in reports)


def check_budget(reports: Sequence[MemoryReport], budget: int) -> None:
    """Compare the plans with the budget.

    Raises:
        InfeasibleError: an arena and the outputs together are larger, because of scratch memory of
        kernels, or of gaps between tensors, which only the plan knows.

    """
    for report in reports:
        if report.activation_bytes > budget:
            tensors = ", ".join(f"'{t.name}' ({format_size(t.bytes)})" for t in report.live[:4])
            raise InfeasibleError(
                f"a memory budget of {format_size(budget)} is not met: @{report.function} takes "
                f"{report.activation_bytes} bytes, at most while '{report.peak_op}' runs with "
                f"{tensors}",
                hint=f"the smallest budget for this plan is {report.activation_bytes} bytes "
                f"({format_size(report.activation_bytes)})",
            )
