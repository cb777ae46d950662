"""A shared object that emulates the entries of a PTX module, launched one by one.

The tests' stand-in for CUDA's driver loads it: if the environment variable BRAID_CUDA_EMULATED
names a directory, compilation for a GPU leaves a library there for each module.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from braid.lowering.gpu.codegen.emulated_ir import STATUS
from braid.lowering.gpu.codegen.messages import Compiled
from braid.lowering.gpu.emulator import emulator_object
from braid.lowering.host.codegen.link import link_shared_object
from braid.lowering.host.codegen.objects import emit_object
from braid.support.atomic_file import atomic_file
from braid.targets.machines.machine import Machine

VARIABLE = "BRAID_CUDA_EMULATED"

_STATUS = f"""
declare i32 @{STATUS}(ptr)
declare i64 @strlen(ptr)
declare ptr @strncpy(ptr, ptr, i64)
define internal void @fail(ptr %env, ptr %message) {{
  %slot = getelementptr ptr, ptr %env, i64 8
  %text = load ptr, ptr %slot
  %place = getelementptr ptr, ptr %env, i64 9
  %room = load i64, ptr %place
  %copied = call ptr @strncpy(ptr %text, ptr %message, i64 %room)
  ret void
}}
define i32 @standin_status(ptr %text, i64 %size) {{
  %env = alloca [16 x ptr]
  %fail = getelementptr ptr, ptr %env, i64 3
  store ptr @fail, ptr %fail
  %slot = getelementptr ptr, ptr %env, i64 8
  store ptr %text, ptr %slot
  %place = getelementptr ptr, ptr %env, i64 9
  %room = sub i64 %size, 1
  store i64 %room, ptr %place
  %status = call i32 @{STATUS}(ptr %env)
  ret i32 %status
}}
"""
"""`int standin_status(char *text, size_t size)`: not 0, and why, when an entry has failed."""


def keep_emulated_library(ptx: bytes, compiled: Sequence[Compiled], host: Machine) -> None:
    """Write the library of a module where the environment asks for it.

    Raises BraidError where it cannot be linked or written.
    """
    directory = os.environ.get(VARIABLE)
    if not directory:
        return
    objects = [*(one.emulated for one in compiled), emulator_object(host)]
    library = link_shared_object([*objects, emit_object(_STATUS, host)])
    Path(directory).mkdir(parents=True, exist_ok=True)
    with atomic_file(Path(directory) / f"{_digest(ptx):016x}.so") as file:
        file.write(library)


def _digest(data: bytes) -> int:
    """Return the FNV-1a hash of 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return digest
