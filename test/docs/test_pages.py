"""Form of the documentation: width, words, a first sentence for the reader, and reachability."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.report import __main__ as report

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WIDTH = 100
PAGES = sorted(DOCS.rglob("*.md"))
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
MOST_LINES = {"README.md": 99}
"""Lines of files that have to stay short."""
MOST_LINES_OF_A_RELEASE = 45
_FENCE = re.compile(r"^(```+).*?^\1$", re.DOTALL | re.MULTILINE)
_GENERATED = {f"reference/{name}.md" for name in ("cli", "c", "dialect", "options", "passes")}
_GENERATED.add("reference/python.md")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blanked(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that is no code, with its number."""
    yield from enumerate(_FENCE.sub(blanked, text).split("\n"), 1)


def wide(text: str) -> list[int]:
    """Return the numbers of lines that are too wide: tables, code and links alone may be."""
    return [
        number
        for number, line in prose(text)
        if len(line) > WIDTH and not line.startswith("|") and " " in line.strip()
    ]


def unused_words(text: str, words: dict[str, str]) -> list[str]:
    """Return what uses a word of `words`, with what to write in its place.

    Paragraphs are looked at as a whole, since lines break anywhere.
    """
    plain = "\n".join(line for _, line in prose(text))
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->", "", plain, flags=re.DOTALL)
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\|)", plain):
        flat = " ".join(paragraph.split())
        for word, better in words.items():
            found += [
                f"'{match[0]}' in '{flat[max(0, match.start() - 40) : match.end() + 20]}': {better}"
                for match in re.finditer(word, flat, re.IGNORECASE)
            ]
    return found


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_lines_are_narrow(path: Path) -> None:
    assert wide(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_words_are_those_of_the_field(path: Path) -> None:
    words = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
    assert unused_words(path.read_text(encoding="utf-8"), words) == []


def test_checks_find_what_is_wrong() -> None:
    text = f"{'a ' * 60}\n\n| {'a ' * 60} |\n\n```text\n{'a ' * 60}\n```\n"
    assert wide(text) == [1]
    assert len(unused_words("A flag is made\nup here. `made up`\n", {"made up": "synthetic"})) == 1


@pytest.mark.parametrize("path", [p for p in PAGES if p != DOCS / "index.md"], ids=named)
def test_pages_begin_with_what_a_reader_can_do(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.match(r"# .+\n\nAfter (?:this page|these pages) you (?:can|know) ", text)


def links(path: Path) -> set[Path]:
    """Return the pages that a page links to."""
    targets = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    return {(path.parent / target).resolve() for target in targets}


def test_every_page_is_reachable_from_the_index() -> None:
    index = DOCS / "index.md"
    reached, waiting = {index}, [index]
    while waiting:
        page = waiting.pop()
        for target in links(page) - reached:
            reached.add(target)
            if target.exists():
                waiting.append(target)
    pages = {*PAGES, *(DOCS / name for name in _GENERATED)}
    assert {named(page) for page in pages - reached} == set()


def test_readme_links_to_pages_that_exist() -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text())
    assert targets and [target for target in targets if not (ROOT / target).exists()] == []


def test_decisions_have_contents() -> None:
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    for page in (DOCS / "decisions").glob("*.md"):
        title, *decisions = re.findall(r"^##? (.+)$", page.read_text(encoding="utf-8"), re.M)
        if page.name != "index.md":
            flat = " ".join(index.split())
            assert f"## [{title}]({page.name})" in index
            assert [d for d in decisions if f"- [{d}]({page.name}#" not in flat] == []


def test_readme_and_releases_are_short() -> None:
    for name, most in MOST_LINES.items():
        assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= most
    releases = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    lengths = {text.split()[0]: len(text.splitlines()) for text in releases}
    assert {"0.1.0", "0.2.0", "0.3.0"} <= lengths.keys()
    assert [name for name, lines in lengths.items() if lines > MOST_LINES_OF_A_RELEASE] == []


def test_tables_are_those_of_the_results() -> None:
    """`make docs` writes them."""
    assert report.stale() == []


def test_every_table_is_shown_once() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in report.pages())
    shown = re.findall(r"<!-- table: (.+?) -->", text)
    assert {*shown} == {*report.TABLES}
    assert sorted(shown) == sorted([*report.TABLES, "cpu models"])  # also in the README


def test_pictures_are_drawings_that_pages_show() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in TEXTS)
    for picture in (DOCS / "pictures").glob("*.svg"):
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert f"pictures/{picture.name}" in shown
