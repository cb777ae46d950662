"""Linking objects, and what is said where that cannot be done."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from braid.lowering.host.codegen.link import link_relocatable, link_shared_object
from braid.support.errors import BraidError

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def compiled(directory: Path, source: str) -> bytes:
    (directory / "a.c").write_text(source)
    command = ["cc", "-c", "-fPIC", directory / "a.c", "-o", directory / "a.o"]
    subprocess.run(command, check=True)
    return (directory / "a.o").read_bytes()


@pytest.fixture
def objects(tmp_path: Path) -> list[bytes]:
    return [
        compiled(tmp_path, "int three(void) { return 3; }"),
        compiled(tmp_path, "int three(void); int six(void) { return 2 * three(); }"),
    ]


def test_shared_object(objects: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "six.so").write_bytes(link_shared_object(objects))
    assert ctypes.CDLL(str(tmp_path / "six.so")).six() == 6


def test_relocatable(objects: list[bytes], tmp_path: Path) -> None:
    joined = link_relocatable(objects)
    (tmp_path / "six.so").write_bytes(link_shared_object([joined]))
    assert ctypes.CDLL(str(tmp_path / "six.so")).six() == 6


def test_an_undefined_symbol(objects: list[bytes]) -> None:
    with pytest.raises(BraidError, match="cannot link the model"):
        link_shared_object(objects[1:])


def test_no_compiler(objects: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BraidError, match="needs a C compiler") as caught:
        link_shared_object(objects)
    assert caught.value.hint is not None and "CC" in caught.value.hint


def test_a_compiler_that_is_not_there(
    objects: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-cc -O2")
    with pytest.raises(BraidError, match="cannot run the C compiler 'no-such-cc'"):
        link_shared_object(objects)
