"""The page of `braid explain`: one file, no network, nothing in a name that could break it."""

import gzip
import json
import re
from base64 import b64decode
from importlib.resources import files
from typing import Any

import jsonschema_rs
import pytest

from braid.tools.explain.document import page_data
from braid.tools.explain.render import PLAIN_UP_TO, render
from braid.tools.explain.views import Bar, Block, MemoryPlan, MemoryView, Table, TimelineView

NASTY = "</script><script>alert('@DATA@')</script>"
FOLDER = files("braid.tools.explain").joinpath("page")
SCHEMA = json.loads(files("braid.tools.explain").joinpath("page.schema.json").read_text())
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)


def page(label: str = NASTY) -> dict[str, Any]:
    plan = MemoryPlan("before", ("a", "b"), (Block("x", 0, 1, 0, 64),), 64)
    bars = (Bar(0, 0.0, 1.5, label),)
    return page_data(
        NASTY,
        memory=MemoryView("Memory", "", (plan,), Table(("n",), (("1",),))),
        timelines=(TimelineView("Order", "", ("unit",), bars, "µs"),),
    )


def data_of(text: str) -> dict[str, Any]:
    match = re.search(r'<script type="([^"]+)" id="data">(.*?)</script>', text, re.S)
    assert match is not None
    kind, data = match.groups()
    return json.loads(gzip.decompress(b64decode(data)) if kind == "application/gzip" else data)


def test_data_survives_names_that_look_like_html() -> None:
    text = render(page())
    assert NASTY not in text
    assert data_of(text) == json.loads(json.dumps(page()))
    VALIDATOR.validate(data_of(text))


def test_large_data_is_compressed() -> None:
    large = page(NASTY * (PLAIN_UP_TO // 10))
    text = render(large)
    assert len(text) < PLAIN_UP_TO + len(render(page()))
    assert data_of(text) == json.loads(json.dumps(large))


def test_numbers_that_json_does_not_have_become_null() -> None:
    data = page() | {"title": "t", "decisions": [{"data": {"gap": float("nan")}}]}
    assert data_of(render(data))["decisions"] == [{"data": {"gap": None}}]


def test_the_page_asks_for_nothing() -> None:
    text = render(page())
    outside = set(re.findall(r"""https?:[^\s"'`)]+""", text))
    # Namespaces, and what is in messages of the libraries.
    assert all("www.w3.org" in each for each in outside), outside
    assert not re.search(r"\bsrc=|<link|@import|\bfetch\(|XMLHttpRequest", text)


def test_the_bundle_ships_with_its_licences() -> None:
    licences = FOLDER.joinpath("bundle/LICENSES.txt").read_text()
    wanted = json.loads(FOLDER.joinpath("package.json").read_text())["devDependencies"]
    for name in wanted.keys() - {"esbuild", "axe-core"}:
        assert f"{name} {wanted[name]}, " in licences
    assert len(FOLDER.joinpath("bundle/explain.js").read_bytes()) < 1_500_000


@pytest.mark.parametrize("file", sorted(FOLDER.joinpath("src").iterdir(), key=str), ids=str)
def test_no_view_is_long(file: Any) -> None:
    assert len(file.read_text().splitlines()) <= 200
