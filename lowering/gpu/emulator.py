"""The emulator of GPUs, an object that the code of models with emulated kernels is linked to."""

import platform
from functools import cache

import braid.lowering
from braid.support.errors import UnsupportedError
from braid.support.shared_objects import find_built
from braid.targets.machines.machine import Machine

_FILE = "braid_gpu_emulator.o"


def emulator_object(host: Machine) -> bytes:
    """Return the relocatable object that defines the functions that emulated kernels call.

    Raises UnsupportedError where `host` is another architecture than this machine's, for which the
    object was built, and BraidError where it is not built.
    """
    if host.architecture.replace("arm64", "aarch64") != platform.machine():
        raise UnsupportedError(
            f"kernels of GPUs are emulated on {platform.machine()} here, not on "
            f"'{host.architecture}'",
            hint="compile on the machine that emulates them",
        )
    return _read()


@cache
def _read() -> bytes:
    return find_built(_FILE, braid.lowering.__path__).read_bytes()
