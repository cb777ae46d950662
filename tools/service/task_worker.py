"""The process that works on one task: searches its kernels, compiles it and explains it.

Its argument is the directory of the task. It writes events as JSON lines to standard output,
and reads the user's orders, a line each, from standard input; when that ends, the server is gone,
and this process ends with all processes that it has started.
"""

import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.errors import BraidError
from braid.support.option_names import naming_flags
from braid.tools.service.sessions import end_session
from braid.tools.service.task import Kernel, TaskOptions
from braid.tools.service.usage import over_limit, restrict_process
from braid.tools.terminal.answer import plain

if TYPE_CHECKING:
    from braid.tuning.space_files import FamilySpace
    from braid.tuning.tune_kernels import TuningReport

ARTIFACT = "model.braid"
EXPLANATION = "explain.html"
REQUEST = "task.json"
_PATIENCE = 600.0
"""Seconds for an order; a kernel whose search gets none is searched no further."""

Report = Callable[..., None]


def main() -> int:
    """Work on the task; the exit status is 0 if it is done."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as events:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        directory = Path(sys.argv[1])
        report = partial(_report, events, threading.Lock())
        orders = queue.SimpleQueue[str]()
        threading.Thread(target=_listen, args=(orders,), daemon=True).start()
        memory, output = 0, 0
        diagnostics = Diagnostics(directory, report)
        try:
            request = json.loads((directory / REQUEST).read_text())
            memory, output = request["memory"], request["output"]
            restrict_process(memory, output)
            options = TaskOptions.model_validate(request["options"])
            with naming_flags(options.names == "flags"), handle_diagnostics(diagnostics.add):
                _work(directory, options, request["jobs"], report, orders)
        except BraidError as error:
            diagnostics.fail(error)
            return 1
        except Exception as error:
            if (limit := over_limit(error, memory, output)) is not None:
                report("error", error=limit)
                return 1
            traceback.print_exc()
            what = f"internal error: {type(error).__name__}: {error}"
            report("error", error=_without_path(what, directory))
            return 1
        return 0


class Diagnostics:
    """The diagnostics of a model's passes, sent to the server each time that they grow.

    Files are named as the user knows them, without the directory of the task.
    """

    def __init__(self, directory: Path, report: Report) -> None:
        """Begin with nothing."""
        self._directory, self._report = directory, report
        self._said: list[dict[str, Any]] = []

    def add(self, diagnostic: Diagnostic) -> None:
        """Report a remark of a pass."""
        self._said.append(self._plain(diagnostic))
        self._report("diagnostics", diagnostics=self._said)

    def fail(self, error: BraidError) -> None:
        """Tell why the task has failed."""
        text = str(error).replace("error: ", "", 1)
        self._said.append(self._plain(Diagnostic.from_error(error)))
        text = _without_path(text, self._directory)
        self._report("error", error=text, diagnostics=self._said)

    def _plain(self, diagnostic: Diagnostic) -> dict[str, Any]:
        return _without_paths(plain(diagnostic), self._directory)


def _report(events: IO[str], lock: threading.Lock, kind: str, /, **data: Any) -> None:
    with lock, suppress(BrokenPipeError):
        print(json.dumps({"kind": kind, "data": data}), file=events, flush=True)


def _listen(orders: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        orders.put(line)
    end_session(os.getsid(0))


def _without_path(text: str, directory: Path) -> str:
    return text.replace(f"{directory}{os.sep}", "")


def _without_paths(value: Any, directory: Path) -> Any:
    """Return JSON of which no text names the directory of the task."""
    if isinstance(value, dict):
        return {k: _without_paths(v, directory) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without_paths(each, directory) for each in cast("list[Any]", value)]
    return _without_path(value, directory) if isinstance(value, str) else value


def _work(
    directory: Path,
    options: TaskOptions,
    jobs: int | None,
    report: Report,
    orders: "queue.SimpleQueue[str]",
) -> None:
    model = directory / options.name
    is_searched = options.on_miss == "tune"
    if is_searched:
        report("step", step="searching schedules")
        _tune(model, options, jobs, report, orders)
    report("step", step="compiling", done=0, total=0, ends=None)
    _compile(model, options, jobs, report)
    if not is_searched:
        _tune(model, options.model_copy(update={"seconds": 0.0}), jobs, report, orders)
    report("step", step="explaining", done=0, total=0)
    _explain(model, options, report)


def _tune(
    model: Path,
    options: TaskOptions,
    jobs: int | None,
    report: Report,
    orders: "queue.SimpleQueue[str]",
) -> None:
    """Search the kernels, or only list them if there is no time."""
    from braid.tools.terminal.steering import steering
    from braid.tuning.budget import PausedClock
    from braid.tuning.search import Final, Rule
    from braid.tuning.tune_kernels import Tuning
    from braid.tuning.tune_model import tune_model

    def say(line: str) -> None:
        report("line", text=line)

    def read() -> str:
        report("asks", asks=True)
        try:
            return orders.get(timeout=_PATIENCE)
        except queue.Empty:
            return ""
        finally:
            report("asks", asks=False)

    def progress(done: int, total: int, left: float) -> None:
        step = f"searching kernel {done + 1} of {total}"
        report("step", step=step, done=done, total=total, ends=time.time() + max(0.0, left))

    clock, final = PausedClock(), Final(options.final)
    tuning = Tuning(
        rule=Rule(options.threshold, options.levels, options.trials, final, options.least_gain),
        seconds=options.seconds,
        jobs=jobs,
        spaces=_spaces(model.parent, options),
        again=options.again and options.seconds > 0,
        by_model=options.search == "model",
        model_class=options.model_class,
        say=say,
        progress=progress,
        whole_model=options.whole_model,
        steer=clock.while_asking(steering(clock.end, read, say)) if options.interactive else None,
        clock=clock,
    )
    found = tune_model(model, tuning, options.compile_options())
    if options.seconds > 0:
        say(str(found))
    kernels = _kernels(found, _names(model, options))
    report("kernels", kernels=[kernel.model_dump() for kernel in kernels])


def _spaces(directory: Path, options: TaskOptions) -> "tuple[FamilySpace, ...]":
    """Return the search spaces of a task, from a file beside the model. Raises BraidError."""
    from braid.tuning.space_files import read_space

    if options.space is None:
        return ()
    path = directory / f"space.{options.space_format}"
    path.write_text(options.space, encoding="utf-8")
    return read_space(path)


def _names(model: Path, options: TaskOptions) -> frozenset[str]:
    """Return the names of all ops of a model as it is read."""
    from braid.dialects.braid.names import names_of
    from braid.driver.read_source import read_to_compile
    from braid.passes.infrastructure.context import make_context

    module = read_to_compile(make_context(), model, options.compile_options()).module
    return frozenset(name for op in module.walk() for name in names_of(op))


def _kernels(report: "TuningReport", names: frozenset[str]) -> list[Kernel]:
    """Return the kernels that have a record, those that take longest first.

    They are called by the model's ops, all of which are in `names`.
    """
    from braid.targets.costs.schedule_records import load_tuned
    from braid.tools.explain.model_names import joined, model_ops

    def called(counter: str) -> str:
        return joined(model_ops(counter.partition("\t")[0].split("+"), names))

    known = load_tuned()
    found = [(known[key], report.names.get(key, ())) for key in report.keys if key in known]
    found.sort(key=lambda each: (-each[0].baseline, each[0].what))
    return [
        Kernel(
            what=kernel.what,
            ops=list(map(called, filter(None, counters))),
            schedule=None if kernel.chosen is None else str(kernel.chosen),
            library=kernel.library,
            default=kernel.baseline,
            searched=kernel.seconds,
            keeps_library=kernel.keeps_library,
        )
        for kernel, counters in found
    ]


def _compile(model: Path, options: TaskOptions, jobs: int | None, report: Report) -> None:
    from braid.driver.compile import compile_or_load
    from braid.support.progress import Progress, telling_progress

    is_searched = options.on_miss == "tune"
    wanted = replace(
        options.compile_options(),
        jobs=jobs,
        load=False,
        kernels="best" if is_searched else None,
        untuned="default" if is_searched else options.on_miss,
        untuned_seconds=options.seconds,
    )

    def progress(made: Progress) -> None:
        if made.stage == "compile":
            step = f"compiling, {made.done} of {made.total} kernels"
            report("step", step=step, done=made.done, total=made.total)

    with telling_progress(progress):
        compiled = compile_or_load(model, wanted)
    compiled.save(model.with_name(ARTIFACT))
    report("report", report=str(compiled.kernels), has_artifact=True)


def _explain(model: Path, options: TaskOptions, report: Report) -> None:
    """Draw what was decided; a model whose page cannot be drawn is compiled all the same."""
    from braid.driver.read_source import read_to_compile
    from braid.driver.sources.decision_sizes import bind_decision_sizes
    from braid.driver.sources.signature import check_model
    from braid.passes.infrastructure.context import make_context
    from braid.tools.explain.model_page import Questions, explain_model
    from braid.tools.explain.render import render

    context = make_context()

    def read_at_likely_sizes() -> Any:
        module = read_to_compile(context, model, options.compile_options()).module
        check_model(module)
        bind_decision_sizes(context, module, options.sizes_of_page())
        return module

    try:
        sizes = options.sizes_of_page()
        page = explain_model(context, read_at_likely_sizes, options.name, Questions(sizes=sizes))
    except BraidError as error:
        report("line", text=f"no explain page: {error}")
        return
    model.with_name(EXPLANATION).write_text(render(page.data), encoding="utf-8")
    report("report", has_explanation=True)


if __name__ == "__main__":
    sys.exit(main())
