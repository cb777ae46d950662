"""The fenced blocks of a page, with the marks in the comments before them."""

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(```+)(\w*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (not run|from|file): (.+?) -->\n\n?\Z")


@dataclass(frozen=True)
class Block:
    """A block of `language`, beginning in `line` of its page.

    `mark` is `from` (the text stands in the file `argument`), `file` (it becomes the file
    `argument`), `not run` (for the reason `argument`), or empty.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    argument: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(path: Path, root: Path) -> list[Block]:
    """Every block of the page, in order."""
    text = path.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        mark = _MARK.search(before)
        name, argument = (mark[1], mark[2]) if mark else ("", "")
        page, line = str(path.relative_to(root)), before.count("\n") + 1
        found.append(Block(page, line, match[2], match[3], name, argument))
    assert "```" not in _FENCE.sub("", text), f"{path}: a fence is indented or left open"
    return found
