"""Measure how long one run of a kernel takes, in this process."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import AnyTensor, element_type_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.call import LoadedKernel
from braid.support.sizes.expression import known
from braid.targets.kernels.kernel_family import Kernel
from braid.tuning.synthetic_inputs import synthetic_array

_COLD_BYTES = 8 << 20
"""Together, the copies of all arguments exceed the caches of one core."""

_MOST_COPIES = 64

Clock = Callable[[], float]


@dataclass(frozen=True)
class TimingRequest:
    """A compiled kernel and its arguments: numpy's name of an element type, and how many.

    `cold` asks for the time with arguments that other work has pushed out of the core's caches,
    as between the kernels of a model; otherwise the arguments stay where the last run left them.
    `libraries` are those of `Kernel`.
    """

    object_code: bytes
    symbol: str
    grid: int
    scratch_bytes: int
    arguments: tuple[tuple[str, int], ...]
    cold: bool = True
    budget_seconds: float = 0.02
    libraries: tuple[str, ...] = ()

    @staticmethod
    def of(
        kernel: Kernel, object_code: bytes, arguments: tuple[tuple[str, int], ...]
    ) -> "TimingRequest":
        """Return the request for a kernel that was compiled."""
        return TimingRequest(
            object_code,
            kernel.symbol,
            known(kernel.grid),
            known(kernel.scratch_bytes),
            arguments,
            libraries=kernel.libraries,
        )


def time_kernel(request: TimingRequest, clock: Clock = time.thread_time) -> float:
    """Return the seconds of one run: the first quartile of at least 3, after one that is not
    counted.

    The time is that of the CPU for this thread: the time of other processes does not count, and if
    they evict data from caches, a run only becomes longer.
    """
    kernel = LoadedKernel(
        request.object_code,
        request.symbol,
        request.grid,
        request.scratch_bytes,
        request.libraries,
    )
    bytes_each = sum(np.dtype(name).itemsize * count for name, count in request.arguments)
    copies = min(_MOST_COPIES, -(-_COLD_BYTES // max(bytes_each, 1))) if request.cold else 1
    calls = [
        kernel.bound(*(synthetic_array((n,), np.dtype(name)) for name, n in request.arguments))
        for _ in range(max(copies, 1))
    ]
    for call in calls:
        call()
    times: list[float] = []
    began = clock()
    while len(times) < 3 or clock() - began < request.budget_seconds:
        call = calls[len(times) % len(calls)]
        start = clock()
        call()
        times.append(clock() - start)
    return float(np.quantile(times, 0.25, method="lower"))


def stored_arguments(group: FusedOp, choice: LayoutChoice) -> tuple[tuple[str, int], ...]:
    """Return the element types and counts of the operands and results of a group, as stored."""
    arguments: list[tuple[str, int]] = []
    layouts = (*choice.operands, *choice.results)
    for value, layout in zip((*group.inputs, *group.outputs), layouts, strict=True):
        dtype = np.dtype(to_numpy(element_type_of(value)))
        size = storage_bytes(cast(AnyTensor, value.type), layout)
        arguments.append((dtype.name, -(-size // dtype.itemsize)))
    return tuple(arguments)
