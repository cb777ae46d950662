"""The sizes of open dims at which a compilation makes its decisions."""

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.dialects.braid.sizes import is_open, likely_sizes
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.passes.sizes.collect_size_checks import CollectSizeChecksPass
from braid.passes.sizes.select_likely_sizes import SelectLikelySizesPass


def decision_sizes(context: Context, module: ModuleOp) -> dict[str, int]:
    """Return the size of each symbol of a module at which decisions about it are made."""
    if not is_open(module):
        return {}
    copy = module.clone()
    run_pipeline(context, copy, [CollectSizeChecksPass(), SelectLikelySizesPass()])
    return likely_sizes(copy)


def bind_decision_sizes(
    context: Context, module: ModuleOp, asked: Mapping[str, int] | None = None
) -> None:
    """Replace the symbols of a module by numbers: `asked`, or those of decisions.

    Raises:
        BraidError: the module has no such symbol, or is impossible at these sizes.

    """
    bind_sizes(module, {**decision_sizes(context, module), **(asked or {})})
