"""The C side of `solvers/native/src/partition.h` in ctypes."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_double, c_int32, c_uint64, c_void_p

import numpy as np
from numpy.typing import NDArray

from braid.solvers.library import Arrays, CLists, library_of
from braid.solvers.partition.groups import Groups
from braid.solvers.partition.problem import Objective, PartitionProblem

MOST_DEVICES = 64


class CPartition(ctypes.Structure):
    """`braid_partition`."""

    _fields_ = (
        ("groups", c_int32),
        ("devices", c_int32),
        ("single", c_int32),
        ("values", c_int32),
        ("ops", c_int32),
        ("sum", c_int32),
        ("work", c_void_p),
        ("bytes", c_void_p),
        ("capacity", c_void_p),
        ("start", c_void_p),
        ("alike", c_void_p),
        ("source", c_void_p),
        ("readers", CLists),
        ("receive", c_void_p),
        ("send", c_void_p),
        ("values_of", CLists),
        ("group_of", c_void_p),
        ("runs", c_void_p),
        ("operands", CLists),
        ("members", CLists),
        ("also", CLists),
    )


_library = library_of(
    {
        "braid_partition_anneal": (
            c_int32,
            (POINTER(CPartition), c_double, c_double, c_uint64, c_void_p, c_void_p),
        ),
        "braid_partition_exact": (c_int32, (POINTER(CPartition), c_double, c_void_p, c_void_p)),
    }
)


class NativePartition:
    """The searches for the devices of groups. Devices are at most `MOST_DEVICES`."""

    def __init__(self, groups: Groups) -> None:
        problem, arrays = groups.problem, Arrays()
        self._arrays = arrays
        values_of: list[list[int]] = [[] for _ in range(groups.count)]
        for value, (maker, readers) in enumerate(zip(groups.makers, groups.readers, strict=True)):
            for group in (groups.of[maker], *readers):
                values_of[group].append(value)

        def numbers(items: NDArray[np.float64]) -> int:
            return arrays.numbers(items.ravel().tolist(), np.float64)

        self._partition = CPartition(
            groups.count,
            problem.devices,
            problem.single,
            len(groups.makers),
            problem.ops,
            problem.objective is Objective.LATENCY,
            numbers(groups.seconds),
            numbers(groups.bytes),
            numbers(problem.capacity),
            numbers(problem.start),
            arrays.numbers(alike(groups), np.int32),
            arrays.numbers([groups.of[maker] for maker in groups.makers], np.int32),
            arrays.lists(groups.readers),
            numbers(problem.receive[groups.makers]),
            numbers(problem.send[groups.makers]),
            arrays.lists(values_of),
            arrays.numbers(groups.of, np.int32),
            arrays.numbers(list(problem.runs or [1.0] * problem.ops), np.float64),
            arrays.lists(problem.operands),
            arrays.lists(problem.replicas),
            arrays.lists(_replicas_on(problem)),
        )

    def anneal(
        self, device: Sequence[int], seconds: float, enough: float, seed: int
    ) -> tuple[list[int], float]:
        """Return the best assignment of groups found from `device` on, and its cost, if it fits."""
        best, found = np.array(device, np.int32), c_double()
        _library().braid_partition_anneal(
            self._partition, seconds, enough, seed + 1, best.ctypes.data, byref(found)
        )
        return best.tolist(), found.value

    def exact(
        self, device: Sequence[int], cost: float, seconds: float
    ) -> tuple[list[int], float, bool]:
        """Return the best assignment, its cost if it is below `cost`, and whether that is
        proven.
        """
        best, found = np.array(device, np.int32), c_double(cost)
        result = _library().braid_partition_exact(
            self._partition, seconds, best.ctypes.data, byref(found)
        )
        return best.tolist(), found.value, result == 1


def _replicas_on(problem: PartitionProblem) -> list[list[int]]:
    """Return by device that is not a replica the replicas that are on it."""
    replicas = range(problem.single, problem.devices)
    return [[r for r in replicas if k in problem.on(r)] for k in range(problem.single)]


def alike(groups: Groups) -> list[int]:
    """Return by device the first one with the same figures for everything."""
    problem = groups.problem
    replicas = [*_replicas_on(problem), *([k] for k in range(problem.single, problem.devices))]
    columns = [
        (
            groups.seconds[:, k].tobytes(),
            problem.receive[:, k].tobytes(),
            problem.send[:, k].tobytes(),
            problem.start[k],
            problem.capacity[k],
            replicas[k],
        )
        for k in range(problem.devices)
    ]
    return [columns.index(column) for column in columns]
