"""The errors of a text, as editors show them."""

from lsprotocol.types import (
    Diagnostic,
    DiagnosticRelatedInformation,
    DiagnosticSeverity,
    Location,
)

from braid.tools.lsp.analysis import Analysis, Problem

SOURCE = "braid"
"""Who found it."""
_SEVERITIES = {"error": DiagnosticSeverity.Error, "warning": DiagnosticSeverity.Warning}


def diagnostics_of(analysis: Analysis, uri: str) -> list[Diagnostic]:
    """Return the diagnostics of a document, with hints on lines of their own."""
    return [diagnostic_of(problem, analysis, uri) for problem in analysis.problems]


def diagnostic_of(problem: Problem, analysis: Analysis, uri: str) -> Diagnostic:
    """Return one item."""
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return Diagnostic(
        range=analysis.positions.range(problem.place),
        message=f"{problem.message}{hint}",
        severity=_SEVERITIES[problem.severity],
        source=SOURCE,
        related_information=[
            DiagnosticRelatedInformation(Location(uri, analysis.positions.range(place)), message)
            for place, message in problem.notes
        ],
    )
