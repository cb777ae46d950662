"""`braid records`: measurements of this machine, and moving them to others."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.support.errors import BraidError
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.command_group import CommandGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from braid.support.records.record_store import Record
    from braid.targets.costs.schedule_records import TunedKernel

records = CommandGroup(
    name="records", help="Inspect the measurements of this machine, and move them to others."
)

KindOption = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="Only records of this kind, such as schedule or cost."),
]
FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="JSON lines, a record each; - for standard streams.")
]


@records.command()
def show(kind: KindOption = None) -> Answer:
    """Count the records of each kind, machine and version of braid."""
    from collections import Counter

    found = Counter((r.kind, r.machine, r.version) for r in _all() if kind in (None, r.kind))
    counts = [
        {"kind": own, "machine": machine, "braid": version, "records": count}
        for (own, machine, version), count in sorted(found.items())
    ]
    return Answer({"records": counts}, lambda: _show(found))


def _show(found: "Mapping[tuple[str, str, str], int]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("kind", "machine", "braid", "records")
    table.columns[-1].justify = "right"
    for (own, machine, version), count in sorted(found.items()):
        table.add_row(own, machine, version, f"{count:,}")
    Console().print(table)


@records.command()
def best(
    steps: Annotated[
        bool, typer.Option("--steps", help="Print the search of each, with refused schedules.")
    ] = False,
) -> Answer:
    """Print the best schedule of each kernel, the largest gain first, then models."""
    from braid.support.records.record_store import default_store
    from braid.targets.costs.schedule_records import TunedKernel, load_tuned
    from braid.tuning.model_verdict import MODEL_KIND, Verdict

    def gain(kernel: TunedKernel) -> float:
        return kernel.baseline / kernel.seconds if kernel.seconds else 1.0

    kernels = sorted(load_tuned().values(), key=gain, reverse=True)
    models = [
        (value, verdict)
        for value in default_store().read(MODEL_KIND).values()
        if (verdict := Verdict.of(value)) is not None
    ]
    data = {
        "kernels": [_kernel_data(kernel, steps) for kernel in kernels],
        "models": [{**value, "verdict": str(verdict)} for value, verdict in models],
    }

    def show_best() -> None:
        _show_kernels(kernels, steps)
        for value, verdict in models:
            print(f"{value.get('what')}, {value.get('kernels')} kernels\n  {verdict}")

    return Answer(data, show_best)


def _kernel_data(kernel: "TunedKernel", steps: bool) -> "dict[str, object]":
    """Return what is known of a kernel; times are in seconds."""
    data: dict[str, object] = {
        "what": kernel.what,
        "schedule": None if kernel.chosen is None else str(kernel.chosen),
        "seconds": kernel.seconds,
        "default_seconds": kernel.baseline,
        "library_seconds": kernel.library,
        "keeps_library": kernel.keeps_library,
    }
    return {**data, "steps": list(_step_lines(kernel))} if steps else data


def _step_lines(kernel: "TunedKernel") -> "Iterator[str]":
    from braid.tuning.search import LevelResult

    yield from (str(step) for step in map(LevelResult.of, kernel.steps) if step is not None)
    yield from (f"{why}: {point}" for point, why in kernel.refused.items())


def _show_kernels(kernels: "Sequence[TunedKernel]", steps: bool) -> None:
    for kernel in kernels:
        library = "" if kernel.library is None else f", library {kernel.library * 1e6:.4g} µs"
        chosen = "the default" if kernel.chosen is None else str(kernel.chosen)
        kept = " (kept)" if kernel.keeps_library else ""
        times = f"{kernel.seconds * 1e6:.4g} µs, default {kernel.baseline * 1e6:.4g} µs"
        print(f"{kernel.what}\n  {chosen}: {times}{library}{kept}")
        for line in _step_lines(kernel) if steps else ():
            print(f"    {line}")


@records.command()
def gc() -> Answer:
    """Remove records that a later one of the same key has replaced."""
    from braid.support.records.record_store import default_store

    count = default_store().drop_replaced()
    return Answer({"removed": count}, lambda: print(f"{count:,} records removed"))


@records.command()
def check() -> Answer:
    """List the records that this braid does not use, and why.

    Damaged records, and records of kernel families that are gone or make different code. The exit
    status is 1 if there are any. Records of other machines are counted, and nothing is removed.
    """
    from braid.support.records.record_store import default_store
    from braid.tuning.record_check import is_of_other_machine, unused_records

    found = _all()
    damaged, unused = list(default_store().damage()), list(unused_records(found))
    lines = [(str(place), reason) for place, reason in damaged]
    for record, reason in unused:
        lines.append((f"{record.kind} {record.value.get('what') or record.key[:12]}", reason))
    others = sum(map(is_of_other_machine, found))
    elsewhere = f", {others:,} are of other machines" if others else ""
    data = {
        "records": len(found),
        "of_other_machines": others,
        "unused": [{"record": what, "reason": reason} for what, reason in lines],
    }
    if not lines:
        said = f"all of {len(found):,} records can be used{elsewhere}"
        return Answer(data, lambda: print(said))

    def show_unused() -> None:
        for what, reason in lines:
            print(f"{what}: {reason}")

    error = BraidError(
        f"{len(lines):,} of {len(found):,} records are not used{elsewhere}",
        hint="'braid tune' searches such kernels again, and 'braid targets calibrate' measures "
        "this machine again; until then they only take room",
    )
    return Answer(data, show_unused, error=error)


@records.command("export")
def export_records(file: FileArgument, kind: KindOption = None) -> Answer:
    """Write the records as JSON lines."""
    from dataclasses import asdict

    from braid.tools.terminal.outputs import check_outputs, write_files

    check_outputs(file)
    lines = [json.dumps(asdict(r), sort_keys=True) for r in _all() if kind in (None, r.kind)]
    write_files({file: "".join(f"{line}\n" for line in lines).encode()})
    return Answer({"output": str(file), "records": len(lines)})


@records.command("import")
def import_records(file: FileArgument) -> Answer:
    """Add the records of a file to the store, all or none.

    Records that the store has already, and repeated ones of the file, are skipped.
    """
    from braid.support.input_files import read_regular, reason
    from braid.support.records.record_store import default_store

    try:
        is_given = str(file) == "-"
        text = sys.stdin.read() if is_given else read_regular(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BraidError(f"cannot read '{file}': {reason(error)}") from error
    lines = enumerate(text.split("\n"), 1)  # texts may contain other line ends
    read = [_read(file, number, line) for number, line in lines if line.strip()]
    known = set(map(_identity, _all()))
    distinct = {_identity(record): record for record in read}
    new = [record for identity, record in distinct.items() if identity not in known]
    if new:
        default_store().append(new)
    present = len(distinct) - len(new)
    return Answer(
        {"added": len(new), "present": present},
        lambda: print(f"{len(new):,} records added, {present:,} were already present"),
    )


def _all() -> "Sequence[Record]":
    from braid.support.records.record_store import default_store

    return default_store().salvaged()


def _identity(record: "Record") -> str:
    value = json.dumps(record.value, sort_keys=True)
    return "\0".join((record.kind, record.key, value, repr(record.created), record.machine))


def _read(file: Path, number: int, line: str) -> "Record":
    """Return the record in a line. Raises BraidError where it is not one."""
    from braid.support.input_files import parse_json
    from braid.support.records.record_store import Record, is_storable

    try:
        record = Record(**parse_json(line))
    except (ValueError, TypeError) as error:
        raise _malformed(file, number) from error
    if not is_storable(record):
        raise _malformed(file, number)
    return record


def _malformed(file: Path, number: int) -> BraidError:
    return BraidError(
        f"line {number} of '{file}' is not a record",
        hint="braid records export writes them: an object with kind, key, value, machine, created "
        "and version",
    )
