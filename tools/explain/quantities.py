"""Costs and sizes as people read them."""

import math


def format_cost(cost: float, resource: str) -> str:
    """Return a cost of `resource` as text; seconds get a unit, infinity a word."""
    if math.isinf(cost):
        return "impossible"
    if resource != "seconds":
        return f"{cost:,.6g} {resource}"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if cost * factor >= 1:
            return f"{cost * factor:.4g} {unit}"
    return f"{cost * 1e6:.3g} µs"


def format_change(cost: float, reference: float, resource: str) -> str:
    """Format how much more than `reference` `cost` is."""
    if math.isinf(cost):
        return "impossible"
    change = cost - reference
    return "+0" if abs(change) <= 1e-9 * abs(reference) else f"+{format_cost(change, resource)}"


def format_seconds(seconds: float) -> str:
    """Return seconds as text with a unit that fits, in three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(seconds) * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if seconds else "0 s"
