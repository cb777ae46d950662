"""braid's passes inside other pipelines: on xDSL's modules and on those of upstream's bindings."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.structure.verification import verify_module
from braid.frontends.mlir.upstream import from_upstream, is_upstream_module, replace_upstream
from braid.passes.infrastructure.context import make_context
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.checked_keywords import checks_arguments
from braid.support.errors import BraidError
from braid.support.forks import compiling

AnyModule = TypeVar("AnyModule")
"""`xdsl.dialects.builtin.ModuleOp`, or `Module` of `mlir.ir`, `torch_mlir.ir` and the like."""


@compiling()
@checks_arguments("braid.run_passes")
def run_passes(module: AnyModule, pipeline: str | Sequence[ModulePass]) -> AnyModule:
    """Run passes on a module, in place, and return it; `pipeline` may be text (`canonicalize,cse`).

    The module is one of xDSL, or the `Module` of a package of upstream MLIR's Python bindings,
    whose ops are then replaced when all passes have succeeded. braid's own ops need a context
    that allows unregistered dialects, or has braid's IRDL loaded.

    Raises:
        BraidError: the pipeline is malformed, the module is invalid or a pass rejects it, or
        `module` is no module. An upstream module is then as it was, a module of xDSL in an
            unspecified state.

    """
    if isinstance(module, ModuleOp):
        verify_module(module)
        run_pipeline(make_context(), module, pipeline)
        return cast(AnyModule, module)
    if not is_upstream_module(module):
        raise BraidError(
            f"cannot run passes on a {type(module).__name__}",
            hint="give a ModuleOp of xDSL, or a Module of MLIR's Python bindings",
        )
    upstream: Any = module
    context = make_context(allow_unregistered=True)
    converted = from_upstream(context, upstream)
    verify_module(converted)
    run_pipeline(context, converted, pipeline)
    replace_upstream(context, upstream, converted)
    return module
