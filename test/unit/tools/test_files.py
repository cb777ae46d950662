"""Splitting input and writing output."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.errors import BraidError
from braid.tools.opt.files import split_chunks, write_output

LINES = st.lists(st.sampled_from(["a", "", "// -----", "  // -----\t", "// ------", "x // -----"]))


@given(LINES)
def test_chunks_hold_every_line_but_the_markers_at_its_place(lines: list[str]) -> None:
    found: dict[int, str] = {}
    for chunk in split_chunks("\n".join(lines)):
        for index, line in enumerate(chunk.text.split("\n")):
            found.setdefault(chunk.line_offset + index, line)
    for number, line in enumerate(lines):
        if line.strip() != "// -----":
            assert found[number] == line


def test_a_marker_needs_a_line_of_its_own() -> None:
    assert len(list(split_chunks("// -----// IR Dump //----- //\na"))) == 1
    assert [c.text for c in split_chunks("a\n// -----\nb")] == ["a\n", "b"]


def test_a_file_keeps_its_mode_and_is_never_partial(tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    write_output(path, "old")
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    path.chmod(0o640)
    write_output(path, "new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(UnicodeEncodeError):
        write_output(path, "\ud800")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_output(tmp_path / "link", "text")
    assert (tmp_path / "target").read_text() == "text" and (tmp_path / "link").is_symlink()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="cannot write"):
        write_output(tmp_path, "text")
