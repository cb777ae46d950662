"""Circuits: when their stages are busy, how full channels are, and what limits the rate."""

import json
from typing import Any

from braid.tools.explain.views import Bar, Table, TimelineView

STAGE = "timeline"
"""The stage of a backend that tells this, a line of JSON for each of its functions."""


def circuit_views(text: str) -> tuple[TimelineView, ...]:
    """Return the views in what a backend writes at `STAGE`."""
    lines = (line for line in text.splitlines() if line.startswith("["))
    return tuple(_view(view) for line in lines for view in json.loads(line))


def _view(view: dict[str, Any]) -> TimelineView:
    bars = tuple(Bar(**bar) for bar in view["bars"])
    table = view["table"]
    return TimelineView(
        view["title"],
        view["summary"],
        tuple(view["lanes"]),
        bars,
        view["unit"],
        Table(tuple(table["columns"]), tuple(map(tuple, table["rows"]))),
    )
