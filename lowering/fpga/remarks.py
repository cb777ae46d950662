"""Provide the numbers in the remarks of passes on designs."""

from braid.analysis.diagnostics.remarks import RemarkValue


def optimum(cycles: int) -> dict[str, RemarkValue]:
    """Return the cost, bound and gap of the design with the fewest cycles."""
    return {"cost": cycles, "lower_bound": cycles, "gap": 0.0}
