"""Remarks: one line in which a decision pass reports its decision, and how good that is.

A pass calls `emit_remark` once per decision. Whoever wants to know runs the pass within
`collect_remarks`; otherwise nothing is recorded and emitting costs one lookup.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.support.compile_scope import scope_variable
from braid.support.errors import SourceLocation

RemarkValue = str | int | float | bool | None


@dataclass(frozen=True)
class Remark:
    """A remark of `pass_name` on the op at `location`.

    `data` is the same in machine-readable form. Costs are seconds and sizes are bytes; a search
    gives `cost`, `lower_bound` and `gap`, where gap = (cost - lower_bound) / cost.
    """

    pass_name: str
    message: str
    location: SourceLocation | None
    op: Operation = field(compare=False, repr=False)
    data: dict[str, RemarkValue] = field(default_factory=dict[str, RemarkValue])

    @property
    def op_name(self) -> str:
        """Return the MLIR name of the op."""
        return self.op.name

    def to_json(self) -> dict[str, object]:
        """Return the remark as a JSON object; an unknown location is null."""
        location = self.location
        return {
            "pass": self.pass_name,
            "op": self.op_name,
            "message": self.message,
            "file": location.file if location else None,
            "line": location.line if location else None,
            "column": location.column if location else None,
            "data": self.data,
        }


_sink: ContextVar[list[Remark] | None] = scope_variable("remarks", None)


@contextmanager
def collect_remarks() -> Generator[list[Remark]]:
    """Collect the remarks emitted within the `with` block, in the order of their emission."""
    remarks: list[Remark] = []
    token = _sink.set(remarks)
    try:
        yield remarks
    finally:
        _sink.reset(token)


@contextmanager
def passing_on_remarks() -> Generator[list[Remark]]:
    """Collect the remarks of the `with` block, and pass them on to the block around it."""
    outer = _sink.get()
    with collect_remarks() as remarks:
        try:
            yield remarks
        finally:
            if outer is not None:
                outer.extend(remarks)


def emit_remark(op: Operation, pass_name: str, message: str, **data: RemarkValue) -> None:
    """Record that `pass_name` decided something about `op`.

    `message` is for people, one line without the pass's name; `data` holds the same numbers for
    tools. Example: `emit_remark(func, "search-order", "peak 12 MiB", cost=12582912, gap=0.0)`.
    """
    if (sink := _sink.get()) is not None:
        sink.append(Remark(pass_name, message, source_location(op), op, data))
