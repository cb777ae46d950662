"""`--mlir-pass-statistics`: how many ops a pass found, made and removed."""

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.passes.infrastructure.instrumentation import Instrumentation

_RULE = "===" + "-" * 73 + "==="


@dataclass
class PassCounts:
    """The counts of one pass, or of all passes of one name."""

    title: str
    found: int = 0
    made: int = 0
    removed: int = 0

    def add(self, other: "PassCounts") -> None:
        """Add the counts of another run of the pass."""
        self.found += other.found
        self.made += other.made
        self.removed += other.removed


class PassStatistics(Instrumentation):
    """Counts ops around each pass by identity: one that is replaced counts as made and removed."""

    def __init__(self) -> None:
        self.runs: list[PassCounts] = []
        """In the order in which the passes ran."""
        self._before: dict[int, Operation] = {}

    @override
    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        # The ops are kept, so that no other gets the identity of one that is removed.
        self._before = {id(op): op for op in module.walk()}

    @override
    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        after = {id(op) for op in module.walk()}
        before = self._before.keys()
        title = f"{type(pass_).__name__} ({pass_.name})"
        self.runs.append(PassCounts(title, len(before), len(after - before), len(before - after)))
        self._before = {}

    def report(self, *, merged: bool) -> str:
        """Return a table of all runs, or, if `merged`, of the passes by name."""
        lines = [_RULE, "... Pass statistics report ...".center(len(_RULE)).rstrip(), _RULE]
        for counts in self._merged() if merged else self.runs:
            lines += [
                counts.title,
                f"  (S) {counts.found:6} num-ops-found   - Number of ops before the pass",
                f"  (S) {counts.made:6} num-ops-made    - Number of ops that the pass made",
                f"  (S) {counts.removed:6} num-ops-removed - Number of ops that the pass removed",
            ]
        return "\n".join(lines)

    def _merged(self) -> list[PassCounts]:
        totals: dict[str, PassCounts] = {}
        for run in self.runs:
            totals.setdefault(run.title, PassCounts(run.title)).add(run)
        return [totals[title] for title in sorted(totals)]
