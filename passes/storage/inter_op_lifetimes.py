"""Compute the values that are live together in a function with concurrent kernels."""

from collections.abc import Iterable, Mapping, Set

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.execution.inter_op_streams import InterOpOrder
from braid.passes.storage.storage import Storage
from braid.solvers.packing.moments import moments


def accesses(order: InterOpOrder, values: Iterable[SSAValue]) -> set[Operation]:
    """Return the ops of the function's body that read or write the memory of `values`."""
    found: set[Operation] = set()
    for value in values:
        owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        if value.owner is not order.block and owner is not None:
            found.add(order.in_body(owner))
        found.update(order.in_body(use.operation) for use in value.uses)
    return found & order.steps.keys()


def write_moments(order: InterOpOrder, accessing: Mapping[Storage, Set[Operation]]) -> None:
    """Write when each storage is live, by the ops that access it.

    One is dead before another one is live where every op that accesses it ends before every op
    that accesses the other begins, in all runs.
    """
    storages = list(accessing)
    ended = np.zeros((len(storages), order.streams + 1), np.int64)
    begun = np.full_like(ended, np.iinfo(np.int64).max)
    for row, ops in enumerate(accessing.values()):
        for step in (order.steps[op] for op in ops):
            column = order.column(step)
            ended[row, column] = max(ended[row, column], step.number)
            begun[row] = np.minimum(begun[row], step.clock)
    together = _together(ended, begun)
    live = moments(together, [storage.bytes for storage in storages])
    for storage, own in zip(storages, live, strict=True):
        storage.moments = own


def _together(ended: NDArray[np.int64], begun: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which storages may be live together, row by row: neither is dead before the other is
    live.
    """
    before = np.array([np.all(begun >= row, axis=1) for row in ended], dtype=bool)
    return ~(before | before.T)
