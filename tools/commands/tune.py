"""`braid tune`: searches the schedules of a model's kernels on this machine."""

from typing import TYPE_CHECKING, Annotated

import typer

from braid.support.errors import BraidError
from braid.tools.commands.options import (
    BoundOption,
    BucketsOption,
    JobsOption,
    ShapeOption,
    SourceArgument,
    TargetOption,
    parse_bounds,
    parse_buckets,
    parse_shapes,
    seconds_option,
)

if TYPE_CHECKING:
    from braid.tuning.search import Step


def tune(
    model: SourceArgument,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="X,…",
            help="The ratio, default's time ÷ best time found, below which the search of a kernel "
            "stops: after the coarsest level, the next one, ….",
        ),
    ] = "0.7,1.0,1.1",
    levels: Annotated[
        int, typer.Option(metavar="N", min=1, help="Look at no more levels than so many.")
    ] = 3,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Measure no more schedules of a kernel than so many."
        ),
    ] = None,
    time: Annotated[float, seconds_option("Begin no further kernel after so long.")] = 600.0,
    final: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="The result: 'fastest' of all that was measured, or by the 'threshold': the best "
            "at the level whose ratio fell below, the default where that was the coarsest.",
        ),
    ] = "fastest",
    again: Annotated[
        bool, typer.Option("--again", help="Search kernels that were searched before, too.")
    ] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Ask after each level whether to go on.")
    ] = False,
    shape: ShapeOption = None,
    shape_buckets: BucketsOption = None,
    shape_bound: BoundOption = None,
    target: TargetOption = None,
    jobs: JobsOption = None,
) -> None:
    """Search schedules of a model's kernels on this machine.

    Kernels of the CPU that take most of a run come first. The baseline of a kernel is its default
    schedule. Every later compilation on this machine uses what was found; a schedule is only taken
    if its results are right, and it is faster than the default by more than the noise of the
    measurements. Best run while the machine does nothing else.
    """
    from braid.measuring import tune_model
    from braid.tools.commands.diagnostics import compiling
    from braid.tuning.search import Final, Rule

    if final not in list(Final):
        known = " or ".join(f"'{each}'" for each in Final)
        raise BraidError(f"--final is '{final}', expected {known}")
    rule = Rule(_thresholds(threshold), levels, trials, Final(final))
    with compiling(model):
        report = tune_model(
            model,
            rule,
            time,
            target=target,
            shapes=parse_shapes(shape),
            shape_buckets=parse_buckets(shape_buckets),
            shape_bounds=parse_bounds(shape_bound),
            jobs=jobs,
            again=again,
            say=lambda line: print(line, flush=True),
            goes_on=_asks if interactive else lambda _: True,
        )
    print(report)


def _thresholds(text: str) -> tuple[float, ...]:
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = ()
    if not found or not all(0 < each < float("inf") for each in found):
        raise BraidError(
            f"--threshold is '{text}', expected positive numbers", hint="such as 0.7,1.0,1.1"
        )
    return found


def _asks(step: "Step") -> bool:
    return typer.confirm(f"  {step}; search the next level?", default=True)
