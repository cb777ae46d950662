"""A page as one HTML file that opens without a network."""

import json
from dataclasses import asdict
from html import escape
from importlib.resources import files
from typing import Any

from braid.tools.explain.drawing import LONGEST, Drawing, draw
from braid.tools.explain.views import GraphView, MemoryView, Node, Page, View

_SCRIPTS = ("dom.js", "graph.js", "timeline.js", "memory.js", "main.js")


def render(page: Page) -> str:
    """Return the file's text: template, style, scripts and the page's data in one."""
    data = {"title": page.title, "views": [_data(view) for view in page.views]}
    # A "</script>" in a name must not end the script that holds the data.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "@TITLE@": escape(page.title),
        "@STYLE@": _source("style.css"),
        "@SCRIPT@": "\n".join(map(_source, _SCRIPTS)),
        "@DATA@": text,
    }
    html = _source("page.html")
    for mark, part in parts.items():
        html = html.replace(mark, part)
    return html


def _source(name: str) -> str:
    return files("braid.tools.explain").joinpath("page", name).read_text(encoding="utf-8")


def _data(view: View) -> dict[str, Any]:
    if isinstance(view, GraphView):
        return {
            "kind": "graph",
            "title": view.title,
            "summary": view.summary,
            "legend": dict(view.legend),
            "drawing": _drawing(draw(view.graph)),
        }
    return {"kind": "memory" if isinstance(view, MemoryView) else "timeline", **asdict(view)}


def _drawing(drawing: Drawing) -> dict[str, Any]:
    return {
        "width": drawing.width,
        "height": drawing.height,
        "frames": [asdict(frame) for frame in drawing.frames],
        "boxes": [
            {"x": b.x, "y": b.y, "width": b.width, "height": b.height, **_node(b.node)}
            for b in drawing.boxes
        ],
        "lines": [asdict(line) for line in drawing.lines],
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "label": node.label,
        "shown": _shortened(node.label),
        "note": node.note if len(node.note) <= LONGEST else node.note[: LONGEST - 1] + "…",
        "holds": bool(node.regions),
        "colour": node.colour,
        "facts": node.facts,
        "choices": asdict(node.choices) if node.choices else None,
    }


def _shortened(text: str) -> str:
    """The end of a name says more than its beginning."""
    return text if len(text) <= LONGEST else "…" + text[1 - LONGEST :]
