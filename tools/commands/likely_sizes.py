"""The sizes at which a command shows a model with open dims."""

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.driver.sources.decision_sizes import decision_sizes
from braid.support.errors import BraidError


def sizes_to_show(
    context: Context, module: ModuleOp, asked: Mapping[str, int]
) -> Mapping[str, int]:
    """Return a size for each symbol of a module: those of `--at`, and for others likely ones.

    Raises:
        BraidError: the module has no dim of a name that is asked for.

    """
    likely = decision_sizes(context, module)
    for name, size in asked.items():
        if name not in likely:
            listed = ", ".join(f"'{each}'" for each in sorted(likely)) or "none"
            raise BraidError(
                f"--at {name}={size} names no open dim of the model",
                hint=f"its open dims are {listed}",
            )
    return {**likely, **asked}
