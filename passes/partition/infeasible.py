"""What to say where no assignment of ops to devices exists."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.locations import source_location
from braid.solvers.partition import PartitionProblem
from braid.solvers.partition.native import MOST_DEVICES
from braid.support.byte_sizes import format_size
from braid.support.errors import BraidError
from braid.targets.machines.target import Device


def infeasible(
    function: FuncOp, problem: PartitionProblem, devices: Sequence[Device], strategy: str
) -> BraidError:
    """The error for a problem without an answer, whose first devices are `devices`."""
    location = source_location(function)
    if problem.devices > MOST_DEVICES:
        return BraidError(
            f"{len(devices)} devices could run ops of '{function.sym_name.data}', expected at most "
            f"{MOST_DEVICES}",
            location=location,
            hint="give devices in the target's file a smaller 'count', or pin ops to some of them",
        )
    runs = np.isfinite(problem.seconds[:, : len(devices)])
    facts: list[str] = []
    for k, device in enumerate(devices):
        if np.isfinite(problem.capacity[k]):
            tied = runs[:, k] & (runs.sum(axis=1) == 1)
            facts.append(
                f"{device.name} has {format_size(int(problem.capacity[k]))}, and "
                f"{int(tied.sum())} ops that may run only there hold "
                f"{format_size(int(problem.bytes[tied].sum()))}"
            )
    elsewhere = (
        "--partition latency or throughput runs them on devices that mapping lists prefer less"
        if strategy == "priority"
        else "let more backends run them, or pin fewer of them"
    )
    return BraidError(
        "the memories of the devices are too small for the ops that have to run there: "
        + "; ".join(facts),
        location=location,
        hint=f"a device holds the weights and results of its ops; {elsewhere}",
    )
