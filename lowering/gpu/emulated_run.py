"""A process that runs kernels of GPUs by the emulator: `python -m braid.lowering.gpu.emulated_run`.

A kernel that crashes ends only this process.
"""

from dataclasses import dataclass

from braid.dialects.braid.relayout import Array
from braid.lowering.gpu.call import call_emulated
from braid.lowering.gpu.launch.launches import Launches
from braid.support.errors import BraidError
from braid.support.worker_process import serve


@dataclass(frozen=True)
class EmulatedRun:
    """A kernel's object, its operands as stored, and the initial contents of its results."""

    emulated: bytes
    launches: Launches
    operands: tuple[Array, ...]
    results: tuple[Array, ...]


def answer(request: EmulatedRun) -> tuple[Array, ...] | None:
    """Return the results; None where the emulator finds something wrong."""
    try:
        call_emulated(request.emulated, request.launches, [*request.operands, *request.results])
    except BraidError:
        return None
    return request.results


if __name__ == "__main__":
    serve(answer)
