"""Splitting input and writing output."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.support.errors import BraidError
from braid.tools.braid_opt import main
from braid.tools.opt.files import split_chunks, write_texts

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


def test_parts_of_a_file_with_line_ends_of_windows(tmp_path: Path, capsys) -> None:
    path = tmp_path / "parts.mlir"
    parts = ["func.func private @a()", "no.such_op", "func.func private @c()"]
    path.write_bytes("\n// -----\n".join(parts).replace("\n", "\r\n").encode())
    assert main([str(path), "--split-input-file"]) == 1
    said = capsys.readouterr()
    assert "@a" in said.out and "@c" in said.out and "\r" not in said.out
    assert "parts.mlir:3:1: error: op 'no.such_op'" in said.err


def test_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    ir, remarks = tmp_path / "out.mlir", tmp_path / "remarks.json"
    write_texts([(ir, "old")])
    for texts in ([(ir, "new"), (tmp_path, "text")], [(ir, "new"), (remarks, "\ud800")]):
        with pytest.raises((BraidError, UnicodeEncodeError)):
            write_texts(texts)
        assert ir.read_text() == "old" and list(tmp_path.iterdir()) == [ir]


def test_what_is_for_standard_output_comes_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BraidError, match="cannot write"):
        write_texts([(None, "text"), (tmp_path, "report")])
    assert capsys.readouterr().out == ""
    write_texts([(None, "text"), (Path("-"), "report"), (tmp_path / "a", "b")])
    assert capsys.readouterr().out == "textreport"
