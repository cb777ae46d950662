"""The dialects and passes that `xdsl-opt` finds through the `xdsl.universe` entry point.

Everything is named here and imported only when it is used.
"""

from xdsl.universe import Universe

from braid.passes.infrastructure.context import DIALECTS, make_context
from braid.passes.infrastructure.registry import braid_only_passes

__all__ = ["UNIVERSE", "make_context"]

UNIVERSE = Universe(all_dialects=dict(DIALECTS), all_passes=braid_only_passes())
"""The entry point; `canonicalize` and `cse` are left out, since xDSL has taken these names."""
