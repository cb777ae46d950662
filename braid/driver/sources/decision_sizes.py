"""The sizes of open dims at which a compilation makes its decisions."""

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.sizes.open_forms import has_open_sizes
from braid.analysis.structure.clusters import is_placed
from braid.dialects.braid.clusters import device_name, set_device
from braid.dialects.braid.sizes import is_open, likely_sizes
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.sizes.append_in_place import AppendInPlacePass
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.passes.sizes.collect_size_checks import CollectSizeChecksPass
from braid.passes.sizes.select_likely_sizes import SelectLikelySizesPass, size_checks_of
from braid.support.sizes.checks import SizeChecks
from braid.targets.machines.resolve import target_of


def decision_sizes(
    context: Context, module: ModuleOp, asked: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the size of each symbol of a module at which decisions about it are made.

    Those of `asked` are as they are there, and others change where the module needs it.
    """
    if not is_open(module):
        return {}
    copy = module.clone()
    passes = [CollectSizeChecksPass(), AppendInPlacePass(), SelectLikelySizesPass()]
    run_pipeline(context, copy, passes)
    sizes = likely_sizes(copy)
    if not asked or not asked.keys() <= sizes.keys():
        return sizes
    sizes |= asked
    checks = size_checks_of(_functions(copy)).among(sizes)
    return dict(checks.solved(sizes, asked) or sizes)


def required_sizes(context: Context, module: ModuleOp) -> SizeChecks:
    """Return what runs of a module check of its sizes."""
    if not is_open(module):
        return SizeChecks()
    copy = module.clone()
    run_pipeline(context, copy, [CollectSizeChecksPass()])
    return size_checks_of(_functions(copy))


def _functions(module: ModuleOp) -> list[FuncOp]:
    return [each for each in module.ops if isinstance(each, FuncOp)]


def bind_decision_sizes(
    context: Context, module: ModuleOp, asked: Mapping[str, int] | None = None
) -> None:
    """Replace the symbols of a module by numbers: `asked`, or those of decisions.

    On a target with several devices, ops of open sizes stay on the host, which runs them.

    Raises:
        BraidError: the module has no such symbol, or is impossible at these sizes.

    """
    target = target_of(module)
    if len(target.devices) > 1:
        for op in module.walk():
            if is_placed(op) and device_name(op) is None and has_open_sizes(op):
                set_device(op, target.host)
    bind_sizes(module, {**decision_sizes(context, module, asked), **(asked or {})})
