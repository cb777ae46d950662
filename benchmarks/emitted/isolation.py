"""Processes in which nothing that this machine is, or was measured to be, bears on what is emitted.

braid is not imported here, since parts of it read the environment at import.
"""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

CORES = {0, 1}
"""The CPUs that the compiler sees: memory of kernels is planned for one worker on each."""


@contextmanager
def isolated_environment() -> Generator[None]:
    """Leave this process and its children no settings, no records and an empty cache."""
    for name in [name for name in os.environ if name.startswith("BRAID_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="braid-emitted-") as folder:
        os.environ["BRAID_CACHE_DIR"] = folder
        os.environ["BRAID_CACHE_LIMIT"] = "0"
        yield


def hide_processor() -> None:
    """Let this process run on some two cores, whose features are not known."""
    import llvmlite.binding as llvm

    system: Any = os
    system.sched_getaffinity = lambda _: CORES
    llvm.get_host_cpu_name = lambda: "x86-64"
    llvm.get_host_cpu_features = dict[str, bool]
