"""Identify an op by text that is equal for ops that compute the same."""

from xdsl.ir import Operation

from braid.dialects.braid.regions import FusedOp
from braid.targets.kernels.keys import canonical_kernel_text
from braid.targets.kernels.single_op_group import single_op_group


def op_text(op: Operation) -> str:
    """Return the canonical text of a group that `op` is alone in, whatever layouts its
    types say.
    """
    return canonical_kernel_text(op if isinstance(op, FusedOp) else single_op_group(op))
