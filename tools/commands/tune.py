"""`braid tune`: searches the schedules of a model's kernels on this machine."""

from collections.abc import Sequence
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

_SEARCHES = ("levels", "model")

ThresholdOption = Annotated[
    str,
    typer.Option(
        metavar="X,…",
        help="The ratio, baseline's time ÷ best time found, below which the search of a kernel "
        "stops: after the coarsest level, the next one, ….",
    ),
]
LevelsOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Look at no more levels than so many.")
]
TrialsOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Measure no more schedules of a kernel than so many."),
]
TimeOption = Annotated[float, seconds_option("Begin no further kernel after so long.")]
FinalOption = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="The result: 'fastest' of all that was measured, or by the 'threshold': the best "
        "at the level whose ratio fell below, the baseline where that was the coarsest.",
    ),
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Search kernels that were searched before, too.")
]
InteractiveOption = Annotated[
    bool, typer.Option("--interactive", help="Ask after each level whether to go on.")
]
SearchOption = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="Level after level, as far as the thresholds say ('levels'); or all levels at once, "
        "as a learned model finds promising ('model', with the extra tune).",
    ),
]


def tune(
    model: SourceArgument,
    threshold: ThresholdOption = "0.7,1.0,1.1",
    levels: LevelsOption = 3,
    trials: TrialsOption = None,
    time: TimeOption = 600.0,
    final: FinalOption = "fastest",
    search: SearchOption = "levels",
    again: AgainOption = False,
    interactive: InteractiveOption = False,
    shape: ShapeOption = None,
    shape_buckets: BucketsOption = None,
    shape_bound: BoundOption = None,
    target: TargetOption = None,
    jobs: JobsOption = None,
) -> None:
    """Search schedules of a model's kernels on this machine.

    Kernels of the CPU that take most of a run come first. The baseline of a kernel is a vendor's
    (oneDNN, with the extra onednn), or its default schedule. Every later compilation on this
    machine uses what was found; a schedule is only taken if its results are right, and it is faster
    than the default by more than the noise of the measurements. Best run while the machine does
    nothing else.
    """
    from braid.measuring import tune_model
    from braid.tools.commands.diagnostics import compiling
    from braid.tuning.search import Final, Rule

    _check_one_of("--final", final, list(Final))
    _check_one_of("--search", search, _SEARCHES)
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
            by_model=search == "model",
            say=lambda line: print(line, flush=True),
            goes_on=_asks if interactive else lambda _: True,
        )
    print(report)


def _check_one_of(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise BraidError(
            f"{option} is '{value}', expected {' or '.join(map(repr, map(str, known)))}"
        )


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
