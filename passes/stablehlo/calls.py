"""Calls of functions that StableHLO does not define: what JAX and XLA name in `custom_call`."""

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from braid.passes.stablehlo.assertions import assume_asserted
from braid.passes.stablehlo.factorization import lapack_getrf, lapack_potrf
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.reflections import lapack_geqrf, lapack_orgqr
from braid.passes.stablehlo.sorting import called_top_k
from braid.passes.stablehlo.triangular import lapack_trsm
from braid.passes.stablehlo.windows import dynamic_reduce_window


def _mark(t: StablehloNode) -> Sequence[SSAValue]:
    """Return the operands of an op that only annotates them: it has no meaning on one device."""
    return list(t.op.operands)


def _assertion(t: StablehloNode) -> Sequence[SSAValue]:
    assume_asserted(t)
    return []


_CALLS: dict[str, Callable[[StablehloNode], Sequence[SSAValue]]] = {
    "SPMDFullToShardShape": _mark,
    "SPMDShardToFullShape": _mark,
    "Sharding": _mark,
    "annotate_device_placement": _mark,
    "lapack_dgeqrf_ffi": lapack_geqrf,
    "lapack_dgetrf_ffi": lapack_getrf,
    "lapack_dorgqr_ffi": lapack_orgqr,
    "lapack_dpotrf_ffi": lapack_potrf,
    "lapack_dtrsm_ffi": lapack_trsm,
    "lapack_sgeqrf_ffi": lapack_geqrf,
    "lapack_sgetrf_ffi": lapack_getrf,
    "lapack_sorgqr_ffi": lapack_orgqr,
    "lapack_spotrf_ffi": lapack_potrf,
    "lapack_strsm_ffi": lapack_trsm,
    "mhlo.topk": called_top_k,
    "shape_assertion": _assertion,
    "stablehlo.dynamic_reduce_window": lambda t: [dynamic_reduce_window(t)],
}
"""Calls by name: annotations, assertions and the LAPACK functions of JAX on the CPU."""


@converter("custom_call")
def custom_call(t: StablehloNode) -> Sequence[SSAValue]:
    """Convert the calls that are known."""
    name = t.text("call_target_name")
    call = _CALLS.get(name)
    if call is None:
        t.unsupported(
            f"calls '{name}', of which braid knows nothing",
            hint="export the model without it; StableHLO's own ops are converted",
        )
    return call(t)
