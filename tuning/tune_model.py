"""Measuring the kernels of a model, in all layouts or by all schedules, before it is compiled."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.settings import write_settings
from braid.driver.lower_source import known_target
from braid.driver.options import DEFAULTS, CompileOptions
from braid.driver.pipeline import passes_for
from braid.driver.read_source import ModelSource, read_to_compile
from braid.driver.sources.signature import check_model
from braid.driver.sources.source_model import SourceModel
from braid.driver.untuned import selecting_passes
from braid.passes.infrastructure.context import make_context
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.passes.schedules.select_schedules import SelectSchedulesPass
from braid.support.diagnostics import Diagnostic, emit
from braid.support.settings import Kernels
from braid.targets.backends import backend_of, kernel_families
from braid.targets.costs.schedule_records import load_tuned
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Target
from braid.tuning.measure_layouts import MeasuringReport, measure_layouts
from braid.tuning.tune_kernels import Tuning, TuningReport, tune_kernels
from braid.tuning.whole_model import Snapshot, WholeModel

MOST_ROUNDS = 4
"""The most rounds of choosing layouts; each brings fewer other kernels than the one before."""


def measure_model(
    source: ModelSource, time_limit: float, options: CompileOptions = DEFAULTS
) -> MeasuringReport:
    """Time the kernels of a model in all layouts they could have, for `time_limit` seconds.

    The measurements are kept in braid's cache directory, and every later compilation on this
    machine chooses layouts by them.

    Raises:
        BraidError: as `compile`.

    """
    context = make_context()
    module = _decided(context, read_to_compile(context, source, options), SelectLayoutsPass.name)
    families = kernel_families(target_of(module).host_device)
    return measure_layouts(module, families, time_limit, jobs=options.jobs)


def tune_model(
    source: ModelSource, tuning: Tuning, options: CompileOptions = DEFAULTS
) -> TuningReport:
    """Search the schedules of a model's kernels, those of the CPU on this machine.

    Results are kept in braid's cache directory, and every later compilation of equal kernels uses
    them. `tuning` says how. Layouts are chosen again with the times that were found, and the
    kernels in other layouts are searched as well, until no kernel is another or `MOST_ROUNDS` are
    over; then the same for layouts that a library's kernels are chosen with (`kernels="best"`).
    Finally the model runs as a whole, with old and new schedules in turns, and schedules that do
    not make it faster are reverted (`WholeModel`).

    Raises:
        BraidError: as `compile`, or what is found cannot be kept.

    """
    context = make_context()
    read = partial(read_to_compile, context, source, options)
    end = tuning.clock() + tuning.seconds

    def left() -> Tuning:
        return replace(tuning, seconds=max(0.0, end - tuning.clock()))

    known = known_target(read().module)
    streams = TuningReport()
    for selecting in selecting_passes(known):
        streams.add(tune_kernels(_decided(context, read(), selecting), left(), selecting=selecting))
    module, report = _tuned_kernels(context, read, tuning, left)
    report.add(streams)
    others = [*_unmeasured(module, known)]
    if not report.keys:
        _warn_of_nothing(module, known, others)
    else:
        for line in others:
            tuning.say(line)
    return report


def _tuned_kernels(
    context: Context,
    read: Callable[[], SourceModel],
    tuning: Tuning,
    left: Callable[[], Tuning],
) -> tuple[ModuleOp, TuningReport]:
    """Search a model's kernels, and take back what does not pay in it; the last module."""
    report, before = TuningReport(), Snapshot.now()
    module = _tuned_in_rounds(context, read, left, Kernels.GENERATED, report)
    if not report.left and _has_library_kernels(report):
        module = _tuned_in_rounds(context, read, left, Kernels.BEST, report)
    if tuning.whole_model and tuning.ray is None and tuning.seconds:
        decided = partial(_read_and_decided, context, read)
        own = frozenset(report.own)
        whole = WholeModel(context, read, decided, report.keys, own, before, tuning.jobs)
        report.whole = whole.confirm(tuning.say)
    return module, report


def _has_library_kernels(report: TuningReport) -> bool:
    """Return whether a library's kernel is the fastest of one that `report` is of."""
    known = load_tuned()
    return any(key in known and known[key].keeps_library for key in report.keys)


def _tuned_in_rounds(
    context: Context,
    read: Callable[[], SourceModel],
    left: Callable[[], Tuning],
    kernels: Kernels,
    report: TuningReport,
) -> ModuleOp:
    """Choose layouts and search in turns, until nothing changes; return the last module.

    Layouts are those of a model that is compiled with `kernels`: a library's time, once it is
    known, may change the best ones.
    """
    module, rounds = None, 0
    while module is None or rounds < MOST_ROUNDS:
        before = report.keys
        module = _read_and_decided(context, read, kernels)
        tuning = left()
        tune_kernels(module, tuning, report=report)
        rounds += 1
        if report.rounds > 1:
            tuning.say(_changed(len(report.keys - before), kernels))
        if report.keys == before or report.left or not report.own:
            break
    return module


def _unmeasured(module: ModuleOp, target: Target) -> Iterator[str]:
    """Yield the passes that choose schedules for devices of `module` without a meter."""
    groups = (op for op in module.walk() if isinstance(op, FusedOp))
    for device in dict.fromkeys(device_of(group, target) for group in groups):
        if (reason := backend_of(device).analytic_scheduling) is not None:
            yield f"nothing is searched for '{device.name}': {reason}"


def _warn_of_nothing(module: ModuleOp, target: Target, reasons: Sequence[str]) -> None:
    """Warn that no kernel of `module` can be searched."""
    emit(
        Diagnostic(
            "warning",
            f"no kernel of the model has schedules that can be searched on target '{target.name}'",
            location=source_location(module),
            hint="; ".join(reasons) or "views and copies have nothing to search",
        )
    )


def _changed(count: int, kernels: Kernels) -> str:
    what = f"{count} kernels are others" if count else "nothing changes"
    which = "" if kernels is Kernels.GENERATED else ", a library's kernels among them"
    return f"layouts chosen again with the times found{which}: {what}"


def _read_and_decided(
    context: Context, read: Callable[[], SourceModel], kernels: Kernels
) -> ModuleOp:
    """Return the module that schedules are selected for, with these kernels."""
    model = read()
    write_settings(model.module, {"kernels": kernels})
    return _decided(context, model, SelectSchedulesPass.name)


def _decided(context: Context, model: SourceModel, name: str) -> ModuleOp:
    """Return the module of `model` as the pass of this name would see it in the default
    pipeline.
    """
    module = model.module
    known_target(module)
    check_model(module)
    passes = passes_for(module)
    place = [pass_.name for pass_ in passes].index(name)
    run_pipeline(context, module, passes[:place])
    return module
