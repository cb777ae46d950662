"""Calls one kernel on numpy arrays by the emulator: for tests, and for what tuning finds."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.dialects.braid.buffer import ALIGNMENT
from braid.lowering.gpu.codegen.emulated_ir import STATUS
from braid.lowering.gpu.emulator import emulator_object
from braid.lowering.gpu.launch.launches import Launches
from braid.lowering.host.codegen.loaded_code import load_objects
from braid.lowering.host.codegen.objects import emit_object
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import BraidError

Array = npt.NDArray[Any]

_FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_CONFLICTS = "braid_gpu_bank_conflicts"
_MOVED = "braid_gpu_moved_bytes"
_FAIL_SLOT = 3
"""The index of the word of `braid_env` that is `fail`."""


@dataclass(frozen=True)
class Counts:
    """The counts that the emulator has made in a call of a kernel.

    `conflicts` are turns that `ldmatrix` has lost because rows were in the same banks, `moved` the
    bytes that were read and written of each buffer, operands first, without copies of tensors.
    """

    conflicts: int
    moved: tuple[int, ...]


def call_emulated(emulated: bytes, launches: Launches, arrays: Sequence[Array]) -> Counts:
    """Run a kernel's object on its operands and results, as stored and in C order.

    Raises BraidError with what the emulator finds wrong.
    """
    for array in arrays:
        assert array.flags.c_contiguous, "kernels take arrays in C order"
    marker = f"{launches.symbol}_status"
    code = load_objects([emulated, emulator_object(host_machine()), _status_thunk(marker)])
    pointers = [array.ctypes.data for array in arrays]
    scratch = np.empty(launches.buffer_bytes[-1] + ALIGNMENT if launches.has_scratch else 0, "u1")
    if launches.has_scratch:
        start = scratch.ctypes.data
        pointers.append(start + -start % ALIGNMENT)
    kinds = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64, ctypes.c_int64]
    ctypes.CFUNCTYPE(None, *kinds)(code.address(launches.symbol))(*pointers, 0, 1)
    reasons: list[str] = []

    def record(env: int, message: bytes) -> None:
        reasons.append(message.decode())

    fail = _FAIL(record)
    words = (ctypes.c_void_p * 16)()
    words[_FAIL_SLOT] = ctypes.cast(fail, ctypes.c_void_p).value
    status = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address(marker))
    if status(ctypes.addressof(words)) != 0:
        raise BraidError(reasons[0])
    conflicts = int(ctypes.CFUNCTYPE(ctypes.c_int64)(code.address(f"{marker}_conflicts"))())
    ask = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address(f"{marker}_moved"))
    return Counts(conflicts, tuple(ask(number) for number in range(len(pointers))))


def _status_thunk(symbol: str) -> bytes:
    """Return the emulator's error about hidden code outside of the code to which it is linked."""

    text = (
        f"declare i32 @{STATUS}(ptr)\ndefine i32 @{symbol}(ptr %env) {{\n"
        f"  %status = call i32 @{STATUS}(ptr %env)\n  ret i32 %status\n}}\n"
        f"declare i64 @{_CONFLICTS}()\ndefine i64 @{symbol}_conflicts() {{\n"
        f"  %count = call i64 @{_CONFLICTS}()\n  ret i64 %count\n}}\n"
        f"declare i64 @{_MOVED}(i64)\ndefine i64 @{symbol}_moved(i64 %number) {{\n"
        f"  %bytes = call i64 @{_MOVED}(i64 %number)\n  ret i64 %bytes\n}}\n"
    )
    return emit_object(text, host_machine())
