"""Kernels of GPUs without a family: a share of the CPU's tests, all of which are slow here."""

from test.run.fallback.test_elementwise import (  # noqa: F401
    test_bools,
    test_division_does_not_trap,
)
from test.run.fallback.test_ops import (  # noqa: F401
    test_arg_reduce,
    test_broadcast_and_constants,
    test_gather,
    test_gather_nd,
    test_layer_norm,
    test_matmul,
    test_scatter_elements,
    test_slice,
    test_softmax,
    test_top_k,
    test_transpose,
)
