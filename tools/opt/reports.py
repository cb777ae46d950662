"""The reports that `braid-opt` prints beside the IR: timing and remarks."""

import json
from collections.abc import Sequence

from braid.analysis.diagnostics.remarks import Remark
from braid.passes.infrastructure.instrumentation import Timing
from braid.support.diagnostics import Diagnostic


def timing_report(timing: Timing) -> str:
    """A table of phases and passes with their wall time, like mlir-opt's `--mlir-timing`."""
    total = timing.total()
    phases = dict(timing.phases)
    phases["(rest)"] = total - sum(phases.values())
    rule = "===" + "-" * 73 + "==="
    lines = [
        rule,
        "... Execution time report ...".center(len(rule)).rstrip(),
        rule,
        f"  Total Execution Time: {total:.4f} seconds",
        "",
        "  ----Wall Time----  ----Name----",
    ]
    for name, seconds in [*phases.items(), ("Total", total)]:
        lines.append(f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {name}")
    return "\n".join(lines)


def remark_diagnostic(remark: Remark) -> Diagnostic:
    """The diagnostic that shows `remark` as `file:line:col: remark: [pass] message`."""
    return Diagnostic("remark", f"[{remark.pass_name}] {remark.message}", remark.location)


def remarks_json(remarks: Sequence[Remark]) -> str:
    """All `remarks` as a JSON array."""
    return json.dumps([remark.to_json() for remark in remarks], indent=2) + "\n"
