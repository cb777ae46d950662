"""The passes of braid by name, each loaded only when it is used; one line a pass, sorted.

Passes of xDSL and of other packages are found through the `xdsl.universe` entry points.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from braid.support.errors import BraidError

PassFactory = Callable[[], type[ModulePass]]

PASSES: dict[str, str] = {
    "annotate-profile": "braid.passes.profile.annotate_profile:AnnotateProfilePass",
    "apply-clusters": "braid.passes.partition.apply_clusters:ApplyClustersPass",
    "apply-fusion": "braid.passes.fusion.apply_fusion:ApplyFusionPass",
    "apply-layouts": "braid.passes.layout.apply_layouts:ApplyLayoutsPass",
    "apply-order": "braid.passes.order.apply_order:ApplyOrderPass",
    "apply-rematerialization": (
        "braid.passes.rematerialization.apply_rematerialization:ApplyRematerializationPass"
    ),
    "apply-splits": "braid.passes.split.apply_splits:ApplySplitsPass",
    "assign-lanes": "braid.passes.order.assign_lanes:AssignLanesPass",
    "attach-streams": "braid.lowering.npu.attach_streams:AttachStreamsPass",
    "canonicalize": "braid.passes.canonicalize.canonicalize:CanonicalizePass",
    "convert-braid-to-linalg": (
        "braid.lowering.common.convert_braid_to_linalg:ConvertBraidToLinalgPass"
    ),
    "convert-stablehlo-to-braid": (
        "braid.passes.stablehlo.convert_stablehlo_to_braid:ConvertStablehloToBraidPass"
    ),
    "convert-tosa-to-braid": ("braid.passes.tosa.convert_tosa_to_braid:ConvertTosaToBraidPass"),
    "cse": "braid.passes.canonicalize.cse:CSEPass",
    "expand-padding": "braid.passes.simplify.expand_padding:ExpandPaddingPass",
    "expand-transposed-convolutions": (
        "braid.passes.simplify.expand_transposed_convolutions:ExpandTransposedConvolutionsPass"
    ),
    "fold-scale-into-weights": (
        "braid.passes.simplify.fold_scale_into_weights:FoldScaleIntoWeightsPass"
    ),
    "fuse-shuffles": "braid.passes.fusion.fuse_shuffles:FuseShufflesPass",
    "group-upstream-ops": "braid.passes.kernels.group_upstream_ops:GroupUpstreamOpsPass",
    "hoist-parameter-expressions": (
        "braid.passes.parameters.hoist_parameter_expressions:HoistParameterExpressionsPass"
    ),
    "hoist-views": "braid.passes.layout.hoist_views:HoistViewsPass",
    "inline": "braid.passes.simplify.inline:InlinePass",
    "lower-program": "braid.lowering.host.lower_program:LowerProgramPass",
    "lower-to-instructions": ("braid.lowering.npu.lower_to_instructions:LowerToInstructionsPass"),
    "materialize-layouts": "braid.lowering.common.materialize_layouts:MaterializeLayoutsPass",
    "measure-order": "braid.tuning.measure_order:MeasureOrderPass",
    "merge-prepared-parameters": (
        "braid.passes.parameters.merge_prepared_parameters:MergePreparedParametersPass"
    ),
    "outline-kernels": "braid.passes.kernels.outline_kernels:OutlineKernelsPass",
    "plan-memory": "braid.passes.storage.plan_memory:PlanMemoryPass",
    "prepare-backends": ("braid.passes.preparation.prepare_backends:PrepareBackendsPass"),
    "reorder-sums": "braid.passes.order.reorder_sums:ReorderSumsPass",
    "search-order": "braid.passes.order.search_order:SearchOrderPass",
    "select-fusion": "braid.passes.fusion.select_fusion:SelectFusionPass",
    "select-layouts": "braid.passes.layout.select_layouts:SelectLayoutsPass",
    "select-rematerialization": (
        "braid.passes.rematerialization.select_rematerialization:SelectRematerializationPass"
    ),
    "select-splits": "braid.passes.split.select_splits:SelectSplitsPass",
    "select-storage": "braid.passes.storage.select_storage:SelectStoragePass",
    "split-concats": "braid.passes.order.split_concats:SplitConcatsPass",
    "split-ops": "braid.passes.split.split_ops:SplitOpsPass",
}
"""Name of the pass -> `module:class`."""


def braid_passes() -> dict[str, PassFactory]:
    """The passes of this package."""
    return {name: partial(_load, name) for name in PASSES}


def braid_only_passes() -> dict[str, PassFactory]:
    """The passes of this package whose names xDSL has not taken.

    A universe with a name that another one has makes `xdsl-opt` refuse to start.
    """
    taken = get_all_passes()
    return {name: factory for name, factory in braid_passes().items() if name not in taken}


@cache
def available_passes() -> dict[str, PassFactory]:
    """Every pass that a pipeline can name; braid's own come first and win over xDSL's."""
    return braid_passes() | installed_universe().all_passes | braid_passes()


@cache
def installed_universe() -> Universe:
    """What the `xdsl.universe` entry points of all installed packages offer.

    Raises `BraidError` where one of them cannot be loaded or two of them clash.
    """
    try:
        return Universe.get_multiverse()
    except Exception as error:
        raise BraidError(
            f"a package that extends xDSL cannot be loaded: {error}",
            hint="see the entry points of group 'xdsl.universe' of the installed packages",
        ) from error


def _load(name: str) -> type[ModulePass]:
    module, _, attribute = PASSES[name].partition(":")
    loaded = getattr(import_module(module), attribute)
    assert issubclass(loaded, ModulePass) and loaded.name == name
    return loaded
