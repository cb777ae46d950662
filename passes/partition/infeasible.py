"""Explain by an error that no assignment of ops to devices exists."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.locations import source_location
from braid.solvers.partition import PartitionProblem
from braid.solvers.partition.native import MOST_DEVICES
from braid.support.byte_sizes import format_size
from braid.support.errors import BraidError
from braid.support.option_names import option_text
from braid.targets.machines.target import Device


def infeasible(
    function: FuncOp, problem: PartitionProblem, devices: Sequence[Device], strategy: str
) -> BraidError:
    """Return the error for a problem without an answer, whose first devices are `devices`."""
    location = source_location(function)
    if problem.devices > MOST_DEVICES:
        return BraidError(
            f"{len(devices)} devices could run ops of '{function.sym_name.data}', expected at most "
            f"{MOST_DEVICES}",
            location=location,
            hint="give devices in the target's file a smaller 'count', or pin ops to some of them",
        )
    facts = _too_small(problem, devices)
    elsewhere = (
        f"{option_text('partition', 'latency')} or throughput runs them on devices that mapping "
        "lists prefer less"
        if strategy == "priority"
        else "let more backends run them, or pin fewer of them"
    )
    return BraidError(
        "the memories of the devices are too small for the ops that have to run there"
        + (f": {facts[0]}" if facts else ""),
        location=location,
        hint=f"a device holds the weights and results of its ops; {elsewhere}",
    )


def _too_small(problem: PartitionProblem, devices: Sequence[Device]) -> list[str]:
    """Return an immediate contradiction: ops that only some devices run need more memory than these
    have.
    """
    runs = np.isfinite(problem.seconds[:, : len(devices)])
    found: list[str] = []
    for pattern in np.unique(runs, axis=0):
        mine = [k for k, able in enumerate(pattern.tolist()) if able]
        held = problem.bytes[(runs == pattern).all(axis=1)]
        available = problem.capacity[mine]
        if mine and (held.sum() > available.sum() or held.max() > available.max()):
            names = " or ".join(devices[k].name for k in mine)
            found.append(
                f"{len(held)} ops that may run only on {names} "
                f"hold {format_size(int(held.sum()))}, the largest "
                f"{format_size(int(held.max()))}; memory is "
                f"{' and '.join(format_size(int(bytes)) for bytes in available)}"
            )
    return found
