"""The meter of streams for `braid tune`: simulated seconds, and results.

Streams are made, and run on the bytes of a simulated chip, in several separate processes: a crash
or a timeout costs only its own answer.
"""

import queue
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic

from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.npu.attach_streams import AttachStreamsPass
from braid.lowering.npu.measured_stream import StreamAnswer, StreamRequest
from braid.lowering.npu.stream_family import StreamKernel
from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.targets.backend import Job
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.target import BackendDescription

WORKER = "braid.lowering.npu.stream_worker"
LEAST_LIMIT = 60.0
"""Seconds that every stream may take to be made."""
PATIENCE = 20.0
"""Simulates the first stream of a group; its compilation ends there."""
RUN_LIMIT = 1800.0
"""The seconds after which a stream that computes is taken to hang."""


@dataclass(frozen=True)
class MadeStream:
    """A compiled stream: the request for it, and its simulated seconds."""

    request: StreamRequest
    seconds: float


@dataclass
class StreamMeter:
    """A `KernelMeter` for `chip`, by `jobs` processes, which end with `ending`.

    A stream is as the compiler makes it, which searches the orders of subgraphs as long.
    """

    chip: BackendDescription
    jobs: int
    ending: ExitStack
    quantity: str = "simulated time"
    is_exact: bool = True
    limits: dict[FusedOp, float] = field(default_factory=dict[FusedOp, float], init=False)
    started: list[WorkerProcess] = field(default_factory=list[WorkerProcess], init=False)
    idle: "queue.SimpleQueue[WorkerProcess]" = field(
        default_factory=queue.SimpleQueue[WorkerProcess], init=False
    )

    def compiled(self, kernels: Sequence[Kernel], group: FusedOp) -> list[MadeStream | None]:
        """Return each stream simulated; None for what does not fit the chip, or takes long
        to make.
        """
        asked = [kernel for kernel in kernels if isinstance(kernel, StreamKernel)]
        if not asked:
            return [None] * len(kernels)
        text, begin = str(asked[0].module), monotonic()
        requests = [StreamRequest(text, self.chip, k.schedule, _SECONDS) for k in asked]
        limit = self.limits.get(group, RUN_LIMIT)
        with ThreadPoolExecutor(self.jobs) as pool:
            waiting = [pool.submit(self._ask, request, limit) for request in requests]
            try:
                answers = [each.result() for each in waiting]
            except BaseException:  # such as an interrupt: the others need not end
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in self.started:
                    worker.kill()
                raise
        took = PATIENCE * (monotonic() - begin)
        self.limits.setdefault(group, max(LEAST_LIMIT, took))
        made = {
            id(kernel): MadeStream(request, found.seconds)
            for kernel, request, found in zip(asked, requests, answers, strict=True)
            if found is not None and found.seconds is not None
        }
        return [made.get(id(kernel)) for kernel in kernels]

    def seconds(self, made: MadeStream) -> float | None:
        """Return the simulated seconds."""
        return made.seconds

    def results(
        self, made: MadeStream, operands: Sequence[Array], results: Sequence[Array]
    ) -> Sequence[Array] | None:
        """Return the results of one run on the bytes of the simulated chip."""
        found = self._ask(replace(made.request, operands=tuple(operands)), RUN_LIMIT)
        return None if found is None else found.results

    def _ask(self, request: StreamRequest, limit: float) -> StreamAnswer | None:
        """Return the worker's answer; None where the process ends, or takes more than `limit`
        seconds.
        """
        try:
            worker = self.idle.get_nowait()
        except queue.Empty:
            worker = self.ending.enter_context(worker_process(WORKER))
            self.started.append(worker)
        try:
            found = worker.ask(request, seconds=limit)
        except WorkerEndedError:
            return None
        self.idle.put(worker)
        return found


_SECONDS = AttachStreamsPass().search_seconds


@contextmanager
def stream_meter(job: Job) -> Generator[StreamMeter]:
    """Return the meter for the chip of the device."""
    with ExitStack() as ending:
        yield StreamMeter(job.target.backend_of(job.device), max(1, job.jobs), ending)
