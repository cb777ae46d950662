"""Where the system refuses the tile registers, code is made and loaded without them."""

import subprocess
import sys

import pytest

from braid.support.llvm_bindings import llvm

REFUSED = """
import ctypes
import struct

# Of seccomp: arch_prctl (158) is an error, other calls are as ever.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 158), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
assert libc.prctl(22, 2, filter, 0, 0) == 0

from braid.runtime.native import cpu_supports
from braid.targets.machines.cpus import cpu_machine

names = cpu_machine("native").enabled_features
assert "avx512f" in names and cpu_supports("avx512f")
assert not [name for name in names if name.startswith("amx")], names
assert not cpu_supports("amx-tile")
"""


def test_a_process_that_is_refused() -> None:
    if not llvm.get_host_cpu_features().get("amx-tile"):
        pytest.skip("this CPU has no tile registers")
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
