"""Runs of upstream MLIR on untrusted modules, in a worker process that may crash.

Upstream's parser, verifiers and passes abort the process if an allocation fails, the size of which
may depend on constants in a model. The worker has limits of memory and time, which grow with the
size of the text.
"""

import resource
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from braid.support.mlir_bindings import ir, package, passmanager, register_stablehlo
from braid.support.worker_pool import IDLE_SECONDS, POOL
from braid.support.worker_process import WorkerEndedError, serve

_MEMORY = 2 << 30
_MEMORY_OF_A_BYTE = 64
"""The memory limit of a text beyond that of the idle worker, fixed and per byte of text."""
_SECONDS = 5
_BYTES_OF_A_SECOND = 1 << 20
"""CPU seconds that a text may take, and for how many bytes there is one more."""
_WAITS = 20
"""The factor by which the answer may take longer on a machine that is busy with other things."""


class RejectedError(Exception):
    """Raised if upstream rejects the module; the message has its diagnostics."""


class EndedError(Exception):
    """Raised if upstream crashed its process or exceeded the time limit; the message says which."""


@dataclass(frozen=True)
class Request:
    """A module to parse, with options and the pipeline that upstream runs on it."""

    text: str
    pipeline: str = ""
    stablehlo: bool = False
    """True if StableHLO and CHLO are registered, where the bindings come with them."""
    unregistered: bool = True
    """True if ops of dialects that are not registered are taken."""
    locations: bool = True
    bytecode: bool = False
    """True if the answer is bytecode instead of text, of this version or else the newest."""
    bytecode_version: int | None = None


def upstream_bytecode(text: str, version: int | None = None) -> bytes:
    """Return the bytecode of a module in generic form, by default of the newest version.

    Raises what `upstream_text` raises.
    """
    return _answered(Request(text, stablehlo=True, bytecode=True, bytecode_version=version))


def upstream_text(request: Request) -> str:
    """Return the module after its pipeline, in generic form.

    Raises:
        RejectedError: upstream does not take the module, or a pass fails.
        EndedError: the worker process has ended or was ended.
        BraidError: no bindings of MLIR are installed.

    """
    return _answered(request)


def _answered(request: Request) -> Any:
    package()
    seconds = _WAITS * _seconds(len(request.text))
    try:
        with POOL.worker(__name__) as worker:
            is_read, answer = worker.ask(request, seconds=seconds)
    except WorkerEndedError as ended:
        raise EndedError(str(ended)) from ended
    if not is_read:
        raise RejectedError(answer)
    return answer


def generic_text(op: Any, *, locations: bool = True) -> str:
    """Return the generic form of an op of upstream, without aliases and with its resources."""
    form = {"print_generic_op_form": True, "assume_verified": True}
    text = str(op.get_asm(**form, enable_debug_info=locations, use_local_scope=True))
    if "dense_resource<" not in text:
        return text
    # Printed in a local scope, a module comes without its resources.
    _, metadata, resources = str(op.get_asm(**form)).rpartition("\n{-#")
    return text + metadata + resources if metadata else text


def _answer(request: Request) -> tuple[bool, str | bytes]:
    """Return whether the module is read, and its text or bytecode, or else why not."""
    _bound(len(request.text))
    with ir.Context() as context:
        context.enable_multithreading(False)
        context.allow_unregistered_dialects = request.unregistered
        if request.stablehlo:
            register_stablehlo(context)
        try:
            module = ir.Module.parse(request.text)
            if request.pipeline:
                passmanager.PassManager.parse(request.pipeline).run(module.operation)
            if request.bytecode:
                file = BytesIO()
                module.operation.write_bytecode(file, desired_version=request.bytecode_version)
                return True, file.getvalue()
            return True, generic_text(module.operation, locations=request.locations)
        except (ir.MLIRError, ValueError) as error:
            return False, str(error)


def _seconds(size: int) -> int:
    return _SECONDS + size // _BYTES_OF_A_SECOND


def _bound(size: int) -> None:
    """Limit the memory of this process to what a text of `size` bytes may need."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    has = pages * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = has + _MEMORY + _MEMORY_OF_A_BYTE * size
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + 1 + _seconds(size)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    serve(_answer, idle_seconds=IDLE_SECONDS)
