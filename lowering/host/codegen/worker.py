"""A process that compiles modules: `python -m` this module, see `workers`."""

from typing import TypeAlias

from braid.lowering.common.upstream import to_llvm_ir
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.objects import emit_object
from braid.support.errors import BraidError
from braid.support.mlir_bindings import without_op_classes
from braid.support.worker_pool import IDLE_SECONDS
from braid.support.worker_process import serve
from braid.targets.machines.machine import Machine

Request: TypeAlias = tuple[str, Machine]
"""Text of the module, and for which machine."""

Answer: TypeAlias = bytes | str
"""The object file, or an error."""


def answer(request: Request) -> Answer:
    """Compile a module."""
    text, machine = request
    try:
        return emit_object(to_llvm_ir(text, LLVM_PASSES), machine)
    except BraidError as error:
        return error.message


if __name__ == "__main__":
    without_op_classes()
    serve(answer, idle_seconds=IDLE_SECONDS)
