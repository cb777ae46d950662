"""What the object file of a kernel depends on."""

import hashlib

from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.objects import OPTIONS
from braid.support.toolchain import braid_version, toolchain
from braid.targets.machines.machine import Machine


def cache_key(text: str, machine: Machine) -> str:
    """Digest of a kernel's text and of everything that turns it into an object."""
    generator = (*toolchain(), braid_version(), ",".join(LLVM_PASSES), str(OPTIONS))
    parts = (text, *generator, machine.triple, machine.cpu, machine.features)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
