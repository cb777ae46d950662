"""Measuring the kernels of a model, in all layouts or by all schedules, before it is compiled."""

from dataclasses import replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.diagnostics.locations import source_location
from braid.graph_pipeline import passes_for
from braid.lower_source import known_target
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.passes.schedules.select_schedules import SelectSchedulesPass
from braid.read_source import Bounds, Buckets, ModelSource, Shapes, read_source
from braid.sources.signature import check_model
from braid.sources.source_model import SourceModel
from braid.support.diagnostics import Diagnostic, emit
from braid.targets.backends import kernel_families
from braid.targets.machines.resolve import target_of
from braid.tuning.measure_layouts import MeasuringReport, measure_layouts
from braid.tuning.tune_kernels import Tuning, TuningReport, tune_kernels
from braid.universe import make_context

MOST_ROUNDS = 4
"""How often layouts are chosen: each time kernels are others the next one finds fewer."""


def measure_model(
    source: ModelSource,
    time_limit: float,
    *,
    target: str | None = None,
    cpu: str | None = None,
    gpu_arch: str | None = None,
    shapes: Shapes | None = None,
    shape_buckets: Buckets | None = None,
    shape_bounds: Bounds | None = None,
    jobs: int | None = None,
) -> MeasuringReport:
    """Time the kernels of a model in all layouts they could have, for `time_limit` seconds.

    The measurements are kept in braid's cache directory, and every later compilation on this
    machine chooses layouts by them. The other parameters are those of `braid.compile`.

    Raises:
        BraidError: as `compile`.

    """
    context = make_context()
    model = read_source(
        context,
        source,
        shapes=shapes,
        buckets=shape_buckets,
        bounds=shape_bounds,
        target=target,
        cpu=cpu,
        gpu_arch=gpu_arch,
    )
    module = _decided(context, model, SelectLayoutsPass.name)
    host = target_of(module).host_device
    families = kernel_families(host)
    return measure_layouts(module, families, time_limit, jobs=jobs)


def tune_model(
    source: ModelSource,
    tuning: Tuning,
    *,
    target: str | None = None,
    shapes: Shapes | None = None,
    shape_buckets: Buckets | None = None,
    shape_bounds: Bounds | None = None,
) -> TuningReport:
    """Search the schedules of a model's kernels on the CPU of this machine.

    What is found is kept in braid's cache directory, and every later compilation of kernels that
    compute the same uses it. `tuning` says how. Layouts are chosen again with the times that were
    found, and the kernels in other layouts are searched as well, until no kernel is another or
    `MOST_ROUNDS` are over. The other parameters are those of `braid.compile`.

    Raises:
        BraidError: as `compile`, or what is found cannot be kept.

    """
    context, report = make_context(), TuningReport()
    read = partial(
        read_source,
        context,
        source,
        shapes=shapes,
        buckets=shape_buckets,
        bounds=shape_bounds,
        target=target,
    )
    end = tuning.clock() + tuning.seconds
    while report.rounds < MOST_ROUNDS:
        before = report.keys
        module = _decided(context, read(), SelectSchedulesPass.name)
        left = replace(tuning, seconds=max(0.0, end - tuning.clock()))
        tune_kernels(module, left, report=report)
        if report.rounds > 1:
            tuning.say(_changed(len(report.keys - before)))
        if not report.keys:
            _warn_of_nothing(module)
        if report.keys == before or report.left or not report.own:
            break
    return report


def _warn_of_nothing(module: ModuleOp) -> None:
    """That no kernel of `module` can be searched, as on devices that run streams."""
    name = target_of(module).name
    emit(
        Diagnostic(
            "warning",
            f"no kernel of the model has schedules that can be searched on target '{name}'",
            location=source_location(module),
            hint="the order of a stream is searched when the model is compiled (--order-seconds); "
            "views and copies have nothing to search",
        )
    )


def _changed(count: int) -> str:
    what = f"{count} kernels are others" if count else "nothing changes"
    return f"layouts chosen again with the times found: {what}"


def _decided(context: Context, model: SourceModel, name: str) -> ModuleOp:
    """The module of `model` as the pass of this name would see it in the default pipeline."""
    module = model.module
    known_target(module)
    check_model(module)
    passes = passes_for(module)
    place = [pass_.name for pass_ in passes].index(name)
    run_pipeline(context, module, passes[:place])
    return module
