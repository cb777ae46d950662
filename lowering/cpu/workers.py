"""Compiles modules in worker processes: in parallel, and safe from LLVM's fatal errors.

An instruction that LLVM cannot select ends the process it is compiled in. Workers take one
module at a time, so that it is known which one ended a worker.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

import braid
from braid.errors import BraidError
from braid.lowering.cpu.target_machine import TargetMachineSpec
from braid.lowering.cpu.worker import Answer


class Worker:
    """One worker process."""

    def __init__(self) -> None:
        self._messages = TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            [sys.executable, "-m", "braid.lowering.cpu.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            env={**os.environ, "PYTHONPATH": _python_path()},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()
        self._messages.close()

    def compile(self, name: str, text: str, machine: TargetMachineSpec) -> bytes:
        """The object file of the module `text`. Raises BraidError naming `name`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump((text, machine), self._process.stdin)
            self._process.stdin.flush()
            answer: Answer = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise BraidError(f"kernel '{name}' ended the compiler: {self._last_words()}") from None
        if isinstance(answer, str):
            raise BraidError(f"kernel '{name}': {answer}")
        return answer

    def _last_words(self) -> str:
        self._process.wait()
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        return lines[0] if lines else f"exit status {self._process.returncode}"


def compile_texts(
    names: Sequence[str], texts: Sequence[str], machine: TargetMachineSpec, jobs: int
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
        with Worker() as worker:
            try:
                while True:
                    index = pending.get_nowait()
                    objects[index] = worker.compile(names[index], texts[index], machine)
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


def _drain(queue: SimpleQueue[int]) -> None:
    with suppress(Empty):
        while True:
            queue.get_nowait()


def _python_path() -> str:
    """Where this process found braid, before what the environment says."""
    home = str(Path(braid.__file__).parents[1])
    return os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
