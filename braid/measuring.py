"""Measuring the kernels of a model before it is compiled."""

from xdsl.passes import ModulePass

from braid.compiler import known_target
from braid.graph_pipeline import passes_for
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.read_source import Bounds, Buckets, ModelSource, Shapes, read_source
from braid.targets.backends import kernel_families
from braid.tuning.measure_layouts import MeasuringReport, measure_layouts
from braid.universe import make_context


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
    run_pipeline(context, model.module, _before_layouts(passes_for(model.module)))
    host = known_target(model.module).host_device
    families = kernel_families(host)
    return measure_layouts(model.module, families, time_limit, jobs=jobs)


def _before_layouts(passes: tuple[ModulePass, ...]) -> tuple[ModulePass, ...]:
    names = [pass_.name for pass_ in passes]
    return passes[: names.index(SelectLayoutsPass.name)]
