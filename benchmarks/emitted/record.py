"""The committed record, and how it differs from what is emitted now."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RECORD = Path(__file__).with_name("record.json")

PACKAGES = ("llvmlite", "numpy", "onnx", "ortools", "pycde", "torch-mlir", "xdsl")
"""The packages that influence emitted code, besides braid."""

_SHOWN = 6
"""Names of files that a line shows."""


@dataclass(frozen=True)
class Emitted:
    """Digests by file of what the model with digest `source` becomes."""

    source: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Record:
    """The digests of what is emitted by case, and the versions of the packages behind it."""

    versions: Mapping[str, str]
    cases: Mapping[str, Emitted] = field(default_factory=dict[str, Emitted])

    def with_cases(self, cases: Mapping[str, Emitted]) -> "Record":
        """Return the record of the present versions with these cases in place of its own."""
        return Record(present_versions(), {**self.cases, **cases})

    def text(self) -> str:
        """Return the record as JSON, a case a line."""
        lines = [
            f"{json.dumps(name)}: {json.dumps([own.source, _packed(own.files)])}"
            for name, own in sorted(self.cases.items())
        ]
        joined = ",\n".join(lines)
        return f'{{"versions": {json.dumps(dict(self.versions))}, "cases": {{\n{joined}\n}}}}\n'


def present_versions() -> dict[str, str]:
    """Return the versions of what is installed here."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def read_record(path: Path = RECORD) -> Record:
    """Return the record at `path`, or an empty one."""
    if not path.exists():
        return Record(present_versions())
    data = json.loads(path.read_text(encoding="utf-8"))
    cases = {name: Emitted(own[0], _unpacked(own[1])) for name, own in data["cases"].items()}
    return Record(data["versions"], cases)


def differences(name: str, recorded: Emitted | None, now: Emitted) -> Iterator[str]:
    """Yield the messages about a case whose digests differ from the record."""
    if recorded is None:
        yield f"{name}: is not in the record"
    elif recorded.source != now.source:
        yield f"{name}: the model differs from that of the record"
    elif recorded.files != now.files:
        old, new = recorded.files, now.files
        changed = [file for file in new if file in old and old[file] != new[file]]
        added, lost = [f for f in new if f not in old], [f for f in old if f not in new]
        parts = [
            f"{what} {_listed(files)}"
            for what, files in (("changed", changed), ("new", added), ("missing", lost))
            if files
        ]
        yield f"{name}: {'; '.join(parts)} (of {len(old)})"


def _listed(files: list[str]) -> str:
    rest = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return ", ".join(files[:_SHOWN]) + rest


def _packed(files: Mapping[str, str]) -> str:
    return ",".join(f"{name}={digest}" for name, digest in files.items())


def _unpacked(text: str) -> dict[str, str]:
    return dict(entry.rsplit("=", 1) for entry in text.split(","))
