"""A process that compiles modules: `python -m braid.lowering.cpu.worker`.

Requests come on the standard input and answers go to the standard output, each pickled; only
`workers` starts such a process and talks to it.
"""

import pickle
import sys
from typing import BinaryIO, TypeAlias

from braid.errors import BraidError
from braid.lowering.common.upstream import to_llvm_ir
from braid.lowering.cpu.llvm_passes import LLVM_PASSES
from braid.lowering.cpu.objects import emit_object
from braid.lowering.cpu.target_machine import TargetMachineSpec

Request: TypeAlias = tuple[str, TargetMachineSpec]
"""Text of the module, and for which machine."""

Answer: TypeAlias = bytes | str
"""The object file, or what is wrong."""


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until there are no more."""
    while True:
        try:
            text, machine = pickle.load(requests)
        except EOFError:
            return
        try:
            answer: Answer = emit_object(to_llvm_ir(text, LLVM_PASSES), machine)
        except BraidError as error:
            answer = error.message
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
