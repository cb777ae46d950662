"""Find the ops that kernels compute, and the functions that hold them."""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.opaque import OpaqueOp


def runtime_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """Yield the functions with a body that run with the model: all but `@prepare`."""
    for op in module.ops:
        if isinstance(op, FuncOp) and op.body.blocks and PREPARED_KEYS not in op.attributes:
            yield op


def may_fuse(op: Operation) -> bool:
    """Return whether `op` is computed, and a group around it would hide nothing that it
    declares.
    """
    return is_compute(op) and not (isinstance(op, OpaqueOp) and op.declares_facts)


def is_compute(op: Operation) -> bool:
    """Return whether `op` is computed by a kernel: a tensor op that is neither a leaf nor a
    view.
    """
    return isinstance(op, TensorOp) and not is_leaf(op) and not is_view(op)
