"""The page of `braid explain`: one file, no network, nothing in a name that could break it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from braid.tools.explain.render import render
from braid.tools.explain.views import (
    Bar,
    Block,
    Edge,
    Graph,
    GraphView,
    MemoryPlan,
    MemoryView,
    Node,
    Page,
    Region,
    Table,
    TimelineView,
)

NASTY = "</script><script>alert(1)</script>"


def page() -> Page:
    inner = Graph((Node("inner"),))
    loop = Node("loop", regions=(Region("body", inner),), choices=Table(("a",), (("1",),)))
    graph = Graph((Node(NASTY, colour="k"), loop), (Edge(0, 1, "tensor<4xf32>", "k"),))
    plan = MemoryPlan("before", ("a", "b"), (Block("x", 0, 1, 0, 64),), 64)
    return Page(
        NASTY,
        (
            GraphView("Graph", "All of it.", graph, {"k": "key"}),
            TimelineView("Order", "", ("unit",), (Bar(0, 0.0, 1.5, "conv"),), "µs"),
            MemoryView("Memory", "", (plan,), Table(("n",), (("1",),))),
        ),
    )


def data_of(text: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match is not None
    return json.loads(match[1])


def test_data_survives_names_that_look_like_html() -> None:
    text = render(page())
    assert NASTY not in text
    data = data_of(text)
    assert data["title"] == NASTY
    views = data["views"]
    assert isinstance(views, list)
    assert [view["kind"] for view in views] == ["graph", "timeline", "memory"]
    boxes = views[0]["drawing"]["boxes"]
    assert [box["label"] for box in boxes] == [NASTY, "loop", "inner"]


def test_the_page_asks_for_nothing() -> None:
    text = render(page()).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|src=|<link|@import|fetch\(", text)


def test_what_is_inside_a_node_is_drawn_inside_of_it() -> None:
    views = data_of(render(page()))["views"]
    assert isinstance(views, list)
    _, loop, inner = views[0]["drawing"]["boxes"]
    assert loop["x"] < inner["x"]
    assert inner["x"] + inner["width"] < loop["x"] + loop["width"]
    assert loop["y"] < inner["y"]
    assert inner["y"] + inner["height"] < loop["y"] + loop["height"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_scripts_parse(tmp_path: Path) -> None:
    script = render(page()).rpartition("<script>")[2].partition("</script>")[0]
    file = tmp_path / "page.js"
    file.write_text(script, encoding="utf-8")
    subprocess.run(["node", "--check", file], check=True)
