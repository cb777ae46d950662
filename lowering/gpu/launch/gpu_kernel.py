"""A kernel of a GPU: entries in the `gpu` dialect, and how each is launched."""

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from braid.lowering.gpu.launch.aligned_entries import with_twins
from braid.lowering.gpu.launch.launches import NO_LAUNCHES, Launches
from braid.lowering.gpu.launch.quotients import shorten_quotients
from braid.targets.kernels.kernel_family import InPlace, Kernel


@dataclass(frozen=True)
class BlockWork:
    """The least work of a block of a launch, by which its time is predicted.

    `flops` are multiplications and additions of products, padding included. The whole GPU does at
    best `rate` per second, of which the schedule is assumed to reach `share`. It copies `copied`
    bytes to shared memory, of which `in_flight` are under way at once.
    """

    flops: float
    rate: float
    share: float
    copied: int
    in_flight: int


@dataclass(frozen=True)
class GpuKernel(Kernel):
    """`module` holds one `gpu.module` with the entries of `launches`, which run in this order.

    `grid` is 1: blocks are scheduled by the device. `work` is that of the first launches, if it is
    known: the others count their memory traffic.
    """

    launches: Launches = NO_LAUNCHES
    work: tuple[BlockWork, ...] = ()

    @staticmethod
    def of(
        launches: Launches,
        module: ModuleOp,
        scratch_bytes: int = 0,
        in_place: tuple[InPlace, ...] = (),
    ) -> "GpuKernel":
        """Return the kernel with the symbol of its launches, and twins of entries; see
        `with_twins`.
        """
        shorten_quotients(module)
        complete = with_twins(module, launches)
        return GpuKernel(
            launches.symbol, module, 1, scratch_bytes, in_place, None, (), launches=complete
        )
