"""A process that compiles kernels of GPUs: `python -m` this module, see `compile_kernels`."""

from typing import TypeAlias

from braid.lowering.gpu.codegen.emulated_ir import emulated_ir
from braid.lowering.gpu.codegen.messages import Compiled, Request
from braid.lowering.gpu.codegen.ptx import device_ir, nvvm_text, optimized_ir, ptx_of
from braid.lowering.host.codegen.objects import emit_object
from braid.support.errors import BraidError
from braid.support.worker_pool import IDLE_SECONDS
from braid.support.worker_process import serve

Answer: TypeAlias = Compiled | str
"""The code, or an error."""


def answer(request: Request) -> Answer:
    """Compile a kernel."""
    try:
        optimized = optimized_ir(device_ir(nvvm_text(request.text)), request.device)
        ptx = ptx_of(optimized, request.device)
        emulated = emit_object(emulated_ir(optimized, request.launches), request.host)
    except BraidError as error:
        return error.message
    return Compiled(ptx.encode(), emulated)


if __name__ == "__main__":
    serve(answer, idle_seconds=IDLE_SECONDS)
