"""Compiles modules in worker processes: in parallel, and safe from LLVM's fatal errors.

An instruction that LLVM cannot select ends the process it is compiled in. Workers take one
module at a time, so that it is known which one ended a worker.
"""

from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from braid.support.errors import BraidError
from braid.support.progress import Steps
from braid.support.worker_pool import POOL
from braid.support.worker_process import WorkerEndedError, WorkerProcess
from braid.targets.machines.machine import Machine

WORKER = "braid.lowering.host.codegen.worker"


def compile_texts(
    labels: Sequence[str], texts: Sequence[str], machine: Machine, jobs: int
) -> list[bytes]:
    """Return the object files of modules, in their order, compiled by `jobs` processes.

    Raises BraidError with the label of one that cannot be compiled; the others are then given up.
    """
    requests = [(text, machine) for text in texts]
    answers = ask_workers(WORKER, labels, requests, jobs, [len(text) for text in texts])
    return [answer for answer in answers if isinstance(answer, bytes)]


def ask_workers(
    worker: str, labels: Sequence[str], requests: Sequence[Any], jobs: int, amounts: Sequence[int]
) -> list[Any]:
    """Return the answers of processes of the module `worker`, in the order of `requests`.

    An answer that is text is an error message. The requests with the largest `amounts` go first.
    Progress is told on the thread that calls this.
    Raises BraidError with the label of a text that has none; the others are then given up.
    """
    from concurrent.futures import ThreadPoolExecutor  # brings logging

    answers: dict[int, Any] = {}
    pending: SimpleQueue[int] = SimpleQueue()
    finished: SimpleQueue[int | None] = SimpleQueue()  # None where a thread ends
    # The longest first: a long one at the end would leave the other workers idle.
    for index in sorted(range(len(requests)), key=lambda i: -amounts[i]):
        pending.put(index)

    def work() -> None:
        with POOL.worker(worker) as process:
            try:
                while True:
                    index = pending.get_nowait()
                    answers[index] = _ask(process, labels[index], requests[index])
                    finished.put(index)
            except Empty:
                return
            except BaseException:
                _drain(pending)
                raise

    def work_and_end() -> None:
        try:
            work()
        finally:
            finished.put(None)

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work_and_end) for _ in range(jobs)]
        try:
            _count(finished, jobs, labels)
        except BaseException:
            _drain(pending)
            raise
    for future in futures:
        future.result()
    return [answers[index] for index in range(len(requests))]


def _ask(worker: WorkerProcess, label: str, request: object) -> Any:
    """Return the answer to a request. Raises BraidError with its label."""
    try:
        answer = worker.ask(request)
    except WorkerEndedError as ended:
        raise BraidError(f"{label} ended the compiler: {ended}") from None
    if isinstance(answer, str):
        raise BraidError(f"{label}: {answer}")
    return answer


def _count(finished: SimpleQueue[int | None], threads: int, labels: Sequence[str]) -> None:
    """Count finished requests until all threads have ended."""
    steps = Steps("compile", len(labels))
    while threads:
        index = finished.get()
        if index is None:
            threads -= 1
        else:
            steps.finish(labels[index])


def _drain(queue: SimpleQueue[int]) -> None:
    with suppress(Empty):
        while True:
            queue.get_nowait()
