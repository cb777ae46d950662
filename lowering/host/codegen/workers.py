"""Compiles modules in worker processes: in parallel, and safe from LLVM's fatal errors.

An instruction that LLVM cannot select ends the process it is compiled in. Workers take one
module at a time, so that it is known which one ended a worker.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue

from braid.lowering.host.codegen.worker import Answer
from braid.support.errors import BraidError
from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.targets.machines.machine import Machine

WORKER = "braid.lowering.host.codegen.worker"


def compile_texts(
    names: Sequence[str], texts: Sequence[str], machine: Machine, jobs: int
) -> list[bytes]:
    """The object files of modules, in their order, by `jobs` processes.

    Raises BraidError naming a module that cannot be compiled; the others are then given up.
    """
    objects: dict[int, bytes] = {}
    pending: SimpleQueue[int] = SimpleQueue()
    # The longest first: a long one at the end would leave the other workers idle.
    for index in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
        pending.put(index)

    def work() -> None:
        with worker_process(WORKER) as worker:
            try:
                while True:
                    index = pending.get_nowait()
                    objects[index] = _compile(worker, names[index], texts[index], machine)
            except Empty:
                return
            except BaseException:
                _drain(pending)
                raise

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work) for _ in range(jobs)]
    for future in futures:
        future.result()
    return [objects[index] for index in range(len(texts))]


def _compile(worker: WorkerProcess, name: str, text: str, machine: Machine) -> bytes:
    """The object file of the module `text`. Raises BraidError naming `name`."""
    try:
        answer: Answer = worker.ask((text, machine))
    except WorkerEndedError as ended:
        raise BraidError(f"kernel '{name}' ended the compiler: {ended}") from None
    if isinstance(answer, str):
        raise BraidError(f"kernel '{name}': {answer}")
    return answer


def _drain(queue: SimpleQueue[int]) -> None:
    with suppress(Empty):
        while True:
            queue.get_nowait()
