"""Describe partition problems: ops in topological order, their costs on devices, and costs of
transfers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]


class Objective(StrEnum):
    """The figure of the loads of devices that is minimized.

    With `THROUGHPUT` it is the largest: devices work on several requests at once, and the busiest
    one determines the interval between requests. With `LATENCY` it is the sum over devices, since
    they take turns on one request.
    """

    THROUGHPUT = "throughput"
    LATENCY = "latency"


@dataclass(frozen=True)
class PartitionProblem:
    """Ops in topological order, by number, and devices, by number.

    Attributes:
        seconds: op × device, of all its expected executions; infinite where the device cannot
            run the op.
        operands: by op, the earlier ops whose values it reads.
        receive: op × device, seconds for a device to get the op's value from another one.
        send: op × device, seconds for a device to give the op's value away.
        start: by device, seconds of a start.
        bytes: by op, the memory that it holds on the device that runs it.
        capacity: by device, bytes; may be infinite.
        colocated: sets of ops that run on one device.
        objective: the objective that is minimized.
        runs: by op, how often it is executed, and so how often it starts its device if a stretch
            begins with it; empty if each runs once.
        replicas: the last devices are no separate devices: an op on one of them is on each of
            these others, which take turns at requests. Its seconds are the average of each of
            them; these, and its bytes, count on each of them.
    """

    seconds: Seconds
    operands: Sequence[Sequence[int]]
    receive: Seconds
    send: Seconds
    start: Seconds
    bytes: NDArray[np.float64]
    capacity: NDArray[np.float64]
    colocated: Sequence[Sequence[int]] = ()
    objective: Objective = Objective.THROUGHPUT
    runs: Sequence[float] = ()
    replicas: Sequence[Sequence[int]] = ()

    @property
    def ops(self) -> int:
        """Return the number of ops."""
        return len(self.operands)

    @property
    def devices(self) -> int:
        """Return the number of devices, with replicas."""
        return len(self.start)

    @property
    def single(self) -> int:
        """Return the number of devices that are not replicas."""
        return self.devices - len(self.replicas)

    def on(self, device: int) -> Sequence[int]:
        """Return the devices that something on `device` is on."""
        return (device,) if device < self.single else self.replicas[device - self.single]

    def spread(self, each: Seconds) -> Seconds:
        """Return by device that is not a replica its own figure and those of the replicas on it."""
        total = each[: self.single].copy()
        for members, figure in zip(self.replicas, each[self.single :], strict=True):
            total[list(members)] += figure
        return total


class InfeasiblePartition(Exception):
    """No assignment exists; the message says why."""


def loads(problem: PartitionProblem, device: Sequence[int]) -> Seconds:
    """Return the seconds by device, without replicas: ops, values received and sent (each once),
    and starts.

    A device starts at least as often as its ops alternate with others' on a path of the graph,
    each time as often as the op runs that a stretch begins with.
    """
    total = np.zeros(problem.devices)
    received = set[tuple[int, int]]()
    sent = set[int]()
    stretches: list[Seconds] = []
    for op, operands in enumerate(problem.operands):
        here = device[op]
        total[here] += problem.seconds[op, here]
        mine = np.zeros(problem.devices)
        own = runs = problem.runs[op] if problem.runs else 1.0
        for other in operands:
            mine = np.maximum(mine, stretches[other])
            own = max(own, stretches[other][here] + runs * (device[other] != here))
            if device[other] != here:
                received.add((other, here))
                sent.add(other)
        mine[here] = max(mine[here], own)
        stretches.append(mine)
    for op, there in received:
        total[there] += problem.receive[op, there]
    for op in sent:
        total[device[op]] += problem.send[op, device[op]]
    starts = np.max(stretches, axis=0) if stretches else np.zeros(problem.devices)
    return problem.spread(total + starts * problem.start)


def cost(problem: PartitionProblem, device: Sequence[int]) -> float:
    """Return the seconds of an assignment by the objective; infinite where a memory is too
    small.
    """
    each = np.bincount(device, problem.bytes, problem.devices).astype(np.float64)
    used = problem.spread(each)
    if np.any(used > problem.capacity[: problem.single]):
        return float("inf")
    total = loads(problem, device)
    return float(total.sum() if problem.objective is Objective.LATENCY else total.max(initial=0.0))
