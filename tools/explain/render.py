"""A page as one HTML file that opens without a network."""

import gzip
import json
import math
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any, cast

PLAIN_UP_TO = 500_000
"""The most characters of a document that is embedded verbatim; a longer one is compressed."""

_PARTS = {"@STYLE@": "style.css", "@SCRIPT@": "bundle/explain.js"}


def render(data: Mapping[str, Any]) -> str:
    """Return the file's text: template, style, script and the document `data` in one."""
    text = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    parts = {mark: _source(name) for mark, name in _PARTS.items()}
    parts["@TITLE@"] = escape(str(data["title"]))
    if len(text) > PLAIN_UP_TO:
        packed = gzip.compress(text.encode(), mtime=0)
        parts |= {"@KIND@": "application/gzip", "@DATA@": b64encode(packed).decode()}
    else:
        # A "</script>" in a name must not end the script that holds the data.
        parts |= {"@KIND@": "application/json", "@DATA@": text.replace("<", "\\u003c")}
    before, *marked = _source("page.html").split("@")
    # In one pass, since the inserted text may contain marks as well.
    return before + "".join(
        parts[f"@{piece}@"] if index % 2 == 0 else piece for index, piece in enumerate(marked)
    )


def _source(name: str) -> str:
    return files("braid.tools.explain").joinpath("page", name).read_text(encoding="utf-8")


def _finite(value: object) -> object:
    """Return `value` without the numbers that JSON does not have: they become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in cast("Mapping[Any, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("list[object]", value)]
    return value
