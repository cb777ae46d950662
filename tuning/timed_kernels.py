"""Kernels of this machine's processor, compiled a few at once and timed by a worker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.host.codegen.compiler import compile_kernels
from braid.support.errors import BraidError
from braid.targets.costs.schedule_records import MEASURED
from braid.targets.kernels.kernel_family import Kernel
from braid.tuning.kernel_runs import RunRequest
from braid.tuning.measuring_workers import MeasuringWorker
from braid.tuning.timing import TimingRequest, stored_arguments


@dataclass(frozen=True)
class TimedKernels:
    """The `KernelMeter` of the host: `jobs` processes compile, and `worker` measures."""

    worker: MeasuringWorker
    jobs: int | None
    quantity: str = MEASURED
    is_exact: bool = False

    def compiled(self, kernels: Sequence[Kernel], group: FusedOp) -> list[TimingRequest | None]:
        """Return what the worker is asked for each."""
        arguments = stored_arguments(group, stored_choice(group))
        return [
            None if code is None else TimingRequest.of(kernel, code, arguments)
            for kernel, code in zip(kernels, self._objects(kernels), strict=True)
        ]

    def seconds(self, made: TimingRequest) -> float | None:
        """Return the worker's seconds."""
        return self.worker.seconds(made)

    def results(
        self, made: TimingRequest, operands: Sequence[Array], results: Sequence[Array]
    ) -> Sequence[Array] | None:
        """Return the worker's results."""
        return self.worker.results(
            RunRequest(
                made.object_code,
                made.symbol,
                made.grid,
                made.scratch_bytes,
                tuple(operands),
                tuple(results),
                made.libraries,
            )
        )

    def _objects(self, kernels: Sequence[Kernel]) -> Iterator[bytes | None]:
        """Compile all at once; if one fails, compile one after the other."""
        try:
            yield from compile_kernels(kernels, jobs=self.jobs)
        except BraidError:
            for kernel in kernels:
                try:
                    (code,) = compile_kernels([kernel], jobs=self.jobs)
                except BraidError:
                    yield None
                else:
                    yield code
