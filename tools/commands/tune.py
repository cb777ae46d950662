"""`braid tune`: searches the schedules of a model's kernels on this machine."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braid.driver.options import CompileOptions
from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import flag_of
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import SourceArgument, seconds_option
from braid.tools.commands.remote_tuning import tune_on_server
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.reporter import reporter

if TYPE_CHECKING:
    from braid.tuning.tune_kernels import Tuning

_SEARCHES = ("levels", "model")
_COMPILATION = (
    *("shapes", "dims", "constants", "shape_buckets", "shape_bounds"),
    *("numerics", "precision", "target"),
)
"""Options of compilations that a server takes too."""

ThresholdOption = Annotated[
    str,
    typer.Option(
        metavar="X,…",
        help="The ratio, baseline's time ÷ best time found, below which the search of a kernel "
        "stops: after the coarsest level, the next one, ….",
    ),
]
LevelsOption = Annotated[int, typer.Option(metavar="N", min=1, help="Look at N levels at most.")]
LeastGainOption = Annotated[
    float,
    typer.Option(
        metavar="PART",
        min=0.0,
        help="End a level if its remaining schedules are not expected to be faster than the "
        "library by this fraction, by the spread of measurements; 0 measures all of them.",
    ),
]
TrialsOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Measure N schedules of a kernel at most."),
]
TimeOption = Annotated[float, seconds_option("Begin no further kernel after so long.")]
FinalOption = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="The result: 'fastest' of all that was measured, or by the 'threshold': the best "
        "until a level's ratio falls below, the baseline where that is the coarsest level.",
    ),
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Search kernels that were searched before, too.")
]
InteractiveOption = Annotated[
    bool,
    typer.Option(
        "--interactive",
        help="Show the space and the times before the first level and after each, and ask on "
        "standard input how to go on: threshold, level, space, stop, or quit.",
    ),
]
WholeModelOption = Annotated[
    bool,
    typer.Option(
        "--whole-model/--no-whole-model",
        help="At last run the model as before and as found, in turns on values made up, and take "
        "back what does not make it faster.",
    ),
]
SpaceOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What is searched: values of schedules by kernel family, .toml or .json, or the name "
        "of an installed package's.",
    ),
]
ModelClassOption = Annotated[
    str,
    typer.Option(
        metavar="CLASS",
        help="Search first the schedules for models of this class: cnn | transformer | rnn | mlp | "
        "auto, by the model's ops.",
    ),
]
SearchOption = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="Level after level, as far as the thresholds say ('levels'); or all levels at once, "
        "as a learned model finds promising ('model', with the extra tune).",
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Measure on the nodes of this Ray cluster that have the CPU of the target, each one "
        "kernel at a time: auto, HOST:PORT, or local. With the extra ray.",
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Search and compile on the machine of a 'braid serve'."),
]
TokenOption = Annotated[
    str | None,
    typer.Option(metavar="TOKEN", envvar="BRAID_TOKEN", help="Token that identifies a user."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="With --server, save the compiled model in FILE."
    ),
]


def steps_teller() -> Callable[[str], None]:
    """Return the reporter of a search's steps: they are printed unless only results are wanted."""
    to = reporter()
    if to.is_json or to.verbosity < 0:
        return lambda _: None
    return lambda line: print(line, flush=True)


@dataclass(frozen=True)
class SearchOptions:
    """The options of the search for schedules."""

    threshold: ThresholdOption = "0.7,1.0,1.1"
    levels: LevelsOption = 3
    least_gain: LeastGainOption = 0.01
    trials: TrialsOption = None
    time: TimeOption = 600.0
    final: FinalOption = "fastest"
    search: SearchOption = "levels"
    again: AgainOption = False
    interactive: InteractiveOption = False
    whole_model: WholeModelOption = True
    space: SpaceOption = None
    model_class: ModelClassOption = "auto"
    ray: RayOption = None

    def check(self) -> None:
        """Raise BraidError for values that are unknown or exclude each other."""
        from braid.tuning.model_classes import CLASSES
        from braid.tuning.search import Final

        _check_one_of("--final", self.final, list(Final))
        _check_one_of("--search", self.search, _SEARCHES)
        _check_one_of("--model-class", self.model_class, CLASSES)
        if not self.least_gain < float("inf"):
            raise BraidError(f"--least-gain is {self.least_gain}, expected a part, such as 0.01")
        if self.interactive and reporter().is_json:
            raise BraidError("--interactive asks on standard output, where --json prints")
        if self.interactive and self.search == "model":
            raise BraidError("--interactive asks between levels; --search=model has none")
        if self.interactive and self.ray is not None:
            raise BraidError("--interactive asks of one kernel at a time; --ray searches several")

    def tuning(self, jobs: int | None) -> "Tuning":
        """Return the same for a search on this machine, which prints its progress."""
        from braid.tools.terminal.steering import steering
        from braid.tuning.budget import PausedClock
        from braid.tuning.search import Final, Rule
        from braid.tuning.space_files import find_space
        from braid.tuning.tune_kernels import Tuning

        say = steps_teller()
        clock, final = PausedClock(), Final(self.final)
        thresholds = _thresholds(self.threshold)
        return Tuning(
            rule=Rule(thresholds, self.levels, self.trials, final, self.least_gain),
            seconds=self.time,
            jobs=jobs,
            again=self.again,
            by_model=self.search == "model",
            spaces=() if self.space is None else find_space(self.space),
            model_class=self.model_class,
            ray=self.ray,
            whole_model=self.whole_model,
            say=say,
            steer=clock.while_asking(steering(clock.end, say=say)) if self.interactive else None,
            clock=clock,
        )

    def of_task(self, options: CompileOptions) -> dict[str, Any]:
        """Return the same for a task of a server."""
        same = (
            *("levels", "least_gain", "trials", "final"),
            *("search", "model_class", "again", "interactive", "whole_model"),
        )
        return {
            **{name: getattr(options, name) for name in _COMPILATION},
            "names": "flags",
            "threshold": _thresholds(self.threshold),
            "seconds": self.time,
            **{name: getattr(self, name) for name in same},
            **_space_of_task(self.space),
        }


@dataclass(frozen=True)
class ServerOptions:
    """The options that say where else schedules are searched."""

    server: ServerOption = None
    token: TokenOption = None
    output: OutputOption = None


@grouped
def tune(
    model: SourceArgument,
    how: SearchOptions,
    elsewhere: ServerOptions,
    options: Annotated[CompileOptions, only(*_COMPILATION, "jobs")],
) -> Answer:
    """Search schedules of a model's kernels, or of one, on this machine.

    Kernels that take most of a run come first. Kernels of the CPU, and of devices that this machine
    has, are timed. For other devices the backend gives the time: a static model predicts GPU
    kernels, and streams of chips with instructions are simulated. The baseline of a kernel is a
    vendor's (the faster of oneDNN, with the extra onednn, and OpenBLAS, with openblas), or its
    default schedule. Every later compilation on this machine uses what was found; a schedule is
    only taken if its results are right, and it is faster than the default by more than the noise of
    the measurements. Best run while the machine does nothing else. With --server, results are kept,
    and used, on the server's machine.
    """
    how.check()
    if elsewhere.server is not None:
        given = [] if options.jobs is None else [flag_of("jobs")]
        _refuse_with_server(given if how.ray is None else ["--ray", *given])
        task, output = how.of_task(options), elsewhere.output
        return tune_on_server(
            model, elsewhere.server, elsewhere.token, task, output, steps_teller()
        )
    token = elsewhere.token
    if elsewhere.output is not None or (token is not None and not _from_environment(token)):
        raise BraidError(
            "--token and --output are for --server",
            hint="without it what is found is used here: braid compile writes the model",
        )
    from braid.tuning.tune_model import tune_model

    tuning = how.tuning(options.jobs)
    with _showing(model, how.interactive):
        report = tune_model(model, tuning, options)
    names = ("searched", "faster", "library", "known", "left", "rounds")
    data = {
        "model": str(model),
        **{name: getattr(report, name) for name in names},
        "before_seconds": report.before,
        "after_seconds": report.after,
        "verdicts": list(map(str, report.whole)),
        "task": None,
    }
    return Answer(data, lambda: print(report))


def _space_of_task(name: str | None) -> dict[str, str]:
    """Return the text of a space after checking it. Raises BraidError if it is malformed."""
    if name is None:
        return {}
    from braid.support.input_files import read_text
    from braid.tuning.space_files import read_space, space_path

    path = space_path(name)
    read_space(path)
    return {
        "space": read_text(path),
        "space_format": "json" if path.suffix == ".json" else "toml",
    }


def _from_environment(token: str) -> bool:
    return os.environ.get("BRAID_TOKEN") == token


def _refuse_with_server(given: Sequence[str]) -> None:
    if given:
        raise BraidError(
            f"{given[0]} is not taken with --server", hint="leave it out: the server decides that"
        )


def _showing(model: Path, interactive: bool) -> AbstractContextManager[object]:
    """Return what passes warn of; and progress, where that does not write over questions."""
    from braid.tools.commands.diagnostics import compiling

    return nullcontext() if interactive else compiling(model, "tuning")


def _check_one_of(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise BraidError(
            f"{option} is '{value}', expected {' or '.join(map(repr, map(str, known)))}",
            hint=did_you_mean(value, known) or f"such as {option} {known[0]}",
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
