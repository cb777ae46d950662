"""Diagnostics and isolation for kernels of upstream ops, which only upstream's passes lower."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.loop_nests import op_name
from braid.analysis.structure.upstream_ops import is_free
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError, UnsupportedError


def upstream_ops(group: FusedOp) -> list[Operation]:
    """Return the ops of a group that compute and are not braid's."""
    ops = group.body.block.ops
    return [op for op in ops if not op_name(op).startswith("braid.") and not is_free(op)]


def jobs_for(groups: Iterable[FusedOp], jobs: int) -> int:
    """Return the number of processes that compile the kernels of `groups`; 1 is this process.

    With upstream ops it is at least 2, since upstream's passes and LLVM may crash the process that
    compiles ops which braid's lowering has not checked.
    """
    return max(2, jobs) if any(map(upstream_ops, groups)) else jobs


@contextmanager
def blamed_on(group: FusedOp) -> Generator[None]:
    """Make errors of lowering a group name its upstream op, with location and a hint.

    Raises:
        UnsupportedError: a BraidError was raised in the block and the group has upstream ops.

    """
    try:
        yield
    except BraidError as error:
        ops = upstream_ops(group)
        if not ops:
            raise
        blamed = next((op for op in ops if f"'{op_name(op)}'" in error.message), ops[-1])
        raise UnsupportedError(
            f"'{op_name(blamed)}' cannot be compiled: {error.message}",
            location=error.location or source_location(blamed),
            hint="rewrite it as other ops of linalg, arith and math on tensors of static shapes, "
            "of floats of at least 16 bits or integers of 1, 8, 16, 32 or 64",
        ) from error
