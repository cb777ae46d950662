"""braid's dialect in a context of upstream MLIR's Python bindings."""

from importlib import import_module
from typing import Any

from braid.dialects.braid import Braid
from braid.dialects.irdl_export import export_irdl
from braid.frontends.mlir.upstream import has_dialect
from braid.support.checked_keywords import checks_arguments
from braid.support.errors import BraidError


@checks_arguments("braid.load_irdl")
def load_irdl(context: Any) -> None:
    """Load braid's dialect into the `Context` of a package of MLIR's Python bindings.

    Modules of that context may then hold braid's ops in generic form, checked as far as IRDL goes,
    without `allow_unregistered_dialects`. IRDL cannot describe a variadic of several types:
    `braid.concat`, `braid.opaque`, `braid.fused` of such values are read in
    the form that `braid-opt --emit=upstream` writes and `braid.run_passes` leaves in such a
    context. Does nothing where braid's dialect is already loaded.

    Raises:
        BraidError: the bindings cannot load dialects from IRDL.

    """
    package = type(context).__module__.partition(".")[0]
    try:
        ir: Any = import_module(f"{package}.ir")
        irdl: Any = import_module(f"{package}.dialects.irdl")
    except ImportError as error:
        raise BraidError(
            f"cannot load IRDL into a {type(context).__name__}: {error}",
            hint="give a Context of MLIR's Python bindings",
        ) from error
    if has_dialect(context, Braid.name):
        return
    with context:
        irdl.load_dialects(ir.Module.parse(export_irdl(Braid)))
        # IRDL has no traits, and a block must end in a terminator.
        ir.IsTerminatorTrait.attach("braid.yield")
