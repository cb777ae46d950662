"""Record where figures come from: the machine, the commit and the versions that made them."""

import os
import platform
import subprocess
from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def provenance(packages: Iterable[str] = ()) -> dict[str, object]:
    """Return the CPU, the number of CPUs, braid's commit, and versions of the installed
    `packages`."""
    return {
        "cpu": _cpu(),
        "cpus": len(_available()),
        "commit": commit(),
        "versions": {name: found for name in packages if (found := _version(name)) is not None},
    }


def commit() -> str:
    """Return the commit of the sources around this file, with a mark if they were changed."""
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=8"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _cpu() -> str:
    """Model name, family and model of the first CPU, and the widest vectors that it has."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    first = info.read_text().split("\n\n")[0]
    lines = (line.partition(":") for line in first.splitlines())
    facts = {key.strip(): value.strip() for key, _, value in lines}
    name, family, model = (facts.get(key, "?") for key in ("model name", "cpu family", "model"))
    flags = facts.get("flags", "").split()
    vectors = next((x for x in ("avx512f", "avx2", "avx", "sse2") if x in flags), "no vectors")
    return f"{name}, family {family}, model {model}, {vectors}"


def _available() -> Collection[int]:
    return (
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
