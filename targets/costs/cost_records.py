"""Measured costs of kernels, read from where `tuning` keeps them.

A record says how long one run of a group took in one choice of layouts, on one machine, with one
version of the kernels. It is found under a digest of all of these, so that a record that no
longer fits is never found.
"""

import hashlib
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.support.cache_directory import MEASUREMENTS, cache_directory, warn_of_damage
from braid.support.entry_file import remove
from braid.support.input_files import NotRegularError
from braid.support.record_lines import decode_line, drop_damaged, read_lines
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
    """The file of this user's measurements, in the form of `record_lines`."""
    return cache_directory() / MEASUREMENTS


def load_records(path: Path | None = None) -> RecordTable:
    """The records in a file, by default the user's; the last one of a key counts.

    A file that cannot be read holds no records. Lines that are damaged are left out of the table,
    and of the file.
    """
    path = path or records_path()
    try:
        stamp = path.stat().st_mtime_ns
    except OSError:
        return RecordTable()
    return _parsed(path, stamp)


@cache
def _parsed(path: Path, _modified: int) -> RecordTable:
    try:
        lines = read_lines(path)
    except NotRegularError as error:
        warn_of_damage(f"the measurements in '{path}' cannot be read: {error.strerror}")
        with suppress(OSError):
            remove(path)
        return RecordTable()
    except OSError:
        return RecordTable()
    records = [decode_line(line) for line in lines]
    if None in records:
        count = records.count(None)
        warn_of_damage(f"{count} of {len(lines)} measurements in '{path}' are damaged and left out")
        drop_damaged(path)
    return RecordTable(dict(record for record in records if record is not None))


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
