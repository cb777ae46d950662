"""Code actions: the names that a diagnostic proposes in place of one that is unknown."""

import re

from lsprotocol.types import CodeAction, CodeActionKind, Range, TextEdit, WorkspaceEdit

from braid.tools.lsp.analysis import Analysis
from braid.tools.lsp.diagnostics import diagnostic_of

_PROPOSAL = re.compile(r"did you mean (?P<names>'[^']+'(?:, '[^']+')*)\?")
_NAME = re.compile(r"'([^']+)'")
_UNKNOWN = re.compile(r"(?:op '(?P<op>[^']+)' is not registered|unknown pass '(?P<pass>[^']+)')")
"""Messages about the very text at their place."""


def fixes_in(analysis: Analysis, uri: str, range: Range) -> list[CodeAction]:
    """Return what could be written instead within `range`, the likeliest first."""
    start, end = analysis.positions.offset(range.start), analysis.positions.offset(range.end)
    actions: list[CodeAction] = []
    for problem in analysis.problems:
        if problem.place.end < start or end < problem.place.start:
            continue
        proposal = _PROPOSAL.search(problem.hint or "")
        if proposal is None or _UNKNOWN.match(problem.message) is None:
            continue
        diagnostic = diagnostic_of(problem, analysis, uri)
        for name in _NAME.findall(proposal["names"]):
            actions.append(
                CodeAction(
                    title=f"Write '{name}'",
                    kind=CodeActionKind.QuickFix,
                    diagnostics=[diagnostic],
                    edit=WorkspaceEdit(changes={uri: [TextEdit(diagnostic.range, name)]}),
                )
            )
    return actions
