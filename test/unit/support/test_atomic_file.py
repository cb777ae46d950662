"""Files that appear whole or not at all."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from braid.support.atomic_file import atomic_file, check_writable
from braid.support.errors import BraidError


def test_an_error_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_file(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_an_ordinary_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_bytes(b"")
    with atomic_file(tmp_path / "atomic") as file:
        file.write(b"x")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with atomic_file(path) as file:
        file.write(b"new")
    assert path.stat().st_mode & 0o777 == 0o640


def _circle(path: Path) -> Path:
    path.symlink_to(path.name)
    return path


def _unread_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_circle, "levels of symbolic links"),
        (_unread_pipe, "a pipe that nobody reads"),
        (_socket, "a socket"),
        (lambda path: path.with_name("x" * 300), "name too long"),
        (lambda path: path.with_name("a\0b"), "no file has such a name"),
    ],
)
def test_what_cannot_be_written_is_said_at_once(
    make: Callable[[Path], Path], said: str, tmp_path: Path
) -> None:
    path = make(tmp_path / "out")
    with pytest.raises(BraidError, match=said), atomic_file(path) as file:
        file.write(b"x")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with atomic_file(pipe) as file:
        file.write(b"x")
    reader.join()
    assert received == [b"x"]
    assert pipe.is_fifo()


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(BraidError, match=r"cannot write '.*none/out': No such file"),
        atomic_file(tmp_path / "none" / "out"),
    ):
        pass


def test_a_check_leaves_everything_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    os.mkfifo(tmp_path / "pipe")
    before = set(tmp_path.iterdir())
    for name in ("old", "new", "pipe"):
        check_writable(tmp_path / name)
    for name in ("old/new", "none/new", "."):
        with pytest.raises(BraidError, match="cannot write"):
            check_writable(tmp_path / name)
    assert set(tmp_path.iterdir()) == before and (tmp_path / "old").read_bytes() == b"old"
