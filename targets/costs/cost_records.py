"""Measured costs of kernels, read from where `tuning` keeps them.

A record says how long one run of a group took in one choice of layouts, on one machine, with one
version of the kernels. It is found under a digest of all of these, so that a record that no
longer fits is never found.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.support.cache_directory import cache_directory
from braid.targets.kernels.group_text import plain_text

GENERIC = "generic"
"""The name of the family that takes nearly every group: the generic lowering."""


class GroupRecords(Protocol):
    """What is known of the kernels of one group from measurements."""

    def seconds(self, choice: LayoutChoice, maker: str) -> float | None:
        """One run of the kernel that `maker`, a family, makes in `choice`; None if not measured."""
        ...


class CostRecords(Protocol):
    """What is known of kernels from measurements."""

    def of_group(self, group: FusedOp) -> GroupRecords:
        """The records of `group`; the layouts in its types do not count."""
        ...


@dataclass(frozen=True)
class RecordTable:
    """Records in memory, by `record_key`."""

    table: Mapping[str, float] = field(default_factory=dict[str, float])

    def of_group(self, group: FusedOp) -> GroupRecords:
        """See `CostRecords`."""
        return _TableOfGroup(self.table, plain_text(group) if self.table else "")


@dataclass(frozen=True)
class _TableOfGroup:
    table: Mapping[str, float]
    text: str

    def seconds(self, choice: LayoutChoice, maker: str) -> float | None:
        """See `GroupRecords`."""
        return self.table.get(_key(self.text, choice, maker)) if self.table else None


def record_key(group: FusedOp, choice: LayoutChoice, maker: str) -> str:
    """Digest of what a measurement is of; the layouts in the types of `group` do not count."""
    return _key(plain_text(group), choice, maker)


def _key(text: str, choice: LayoutChoice, maker: str) -> str:
    layouts = [layout.tag for layout in (*choice.operands, *choice.results)]
    parts = (text, *layouts, maker, machine_name(), _kernel_sources())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def records_path() -> Path:
    """The file of this user's measurements: one JSON object a line, `{"key", "seconds", …}`."""
    return cache_directory() / "measurements.jsonl"


def load_records(path: Path | None = None) -> RecordTable:
    """The records in a file, by default the user's; the last one of a key counts.

    A file that cannot be read holds no records, nor does a line that was not written whole.
    """
    path = path or records_path()
    try:
        stamp = path.stat().st_mtime_ns
    except OSError:
        return RecordTable()
    return _parsed(path, stamp)


@cache
def _parsed(path: Path, _modified: int) -> RecordTable:
    table: dict[str, float] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return RecordTable()
    for line in lines:
        try:
            entry: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            fields = cast(dict[str, Any], entry)
            key, seconds = fields.get("key"), fields.get("seconds")
            if isinstance(key, str) and isinstance(seconds, float) and seconds >= 0:
                table[key] = seconds
    return RecordTable(table)


@cache
def machine_name() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    identity = {"model name", "cpu family", "model", "stepping", "flags", "Features", "CPU part"}
    fields = [line for line in lines if line.partition(":")[0].strip() in identity]
    names = dict.fromkeys((platform.machine(), platform.processor(), *fields))
    return "\n".join(names)


@cache
def _kernel_sources() -> str:
    """Digest of the sources of the kernels: others make other kernels."""
    directory = Path(__file__).resolve().parents[2] / "lowering" / "cpu" / "kernels"
    digest = hashlib.sha256()
    for file in sorted(directory.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
