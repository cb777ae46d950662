"""The stamp of what is installed: another one when code that compiles models may be another."""

import os
import sys
import zipfile
from importlib import invalidate_caches
from pathlib import Path

import pytest

from braid.support import installation
from braid.support.installation import installation_stamp, stamped_packages


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory of the search path."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def stamp(monkeypatch: pytest.MonkeyPatch) -> str:
    """As a new process has it."""
    monkeypatch.setattr(installation, "_first", [])
    found = installation_stamp()
    assert found is not None
    return found


def install(place: Path, group: str = "braid.onnx_importers", kind: str = "dist-info") -> Path:
    """Installs a package with an entry point and a file of data, which is returned."""
    metadata = place / f"added-1.0.{kind}"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(f"[{group}]\nadded = added.module:NAME\n")
    package = place / "added"
    package.mkdir()
    (package / "__init__.py").write_text("")
    data = package / "figures.txt"
    data.write_text("one")
    invalidate_caches()
    return data


@pytest.mark.parametrize("kind", ["dist-info", "egg-info"])
@pytest.mark.parametrize("group", ["braid.onnx_importers", "xdsl.universe"])
def test_packages_that_add_to_braid(
    place: Path, monkeypatch: pytest.MonkeyPatch, group: str, kind: str
) -> None:
    stamps = [stamp(monkeypatch)]
    data = install(place, group, kind)
    assert "added" in stamped_packages()
    stamps.append(stamp(monkeypatch))
    data.write_text("three")
    stamps.append(stamp(monkeypatch))
    (data.parent / "__pycache__").mkdir()
    (data.parent / "__pycache__" / "module.pyc").write_text("")
    assert stamp(monkeypatch) == stamps[-1]
    assert len(set(stamps)) == 3


def test_what_is_installed_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(place, group="console_scripts")
    assert "added" not in stamped_packages()
    before = stamp(monkeypatch)
    os.utime(place / "added-1.0.dist-info", ns=(0, 0))
    assert stamp(monkeypatch) != before


def test_archives(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = place / "added.zip"
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    stamps = [stamp(monkeypatch)]
    for text in ("", "# more"):
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("added.py", text)
        stamps.append(stamp(monkeypatch))
    assert len(set(stamps)) == 3


def test_process_that_was_there_before(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code is of what was installed then."""
    before = stamp(monkeypatch)
    data = install(place)
    assert installation_stamp() is None
    assert installation_stamp() is None
    data.unlink()
    for path in (place / "added-1.0.dist-info").iterdir():
        path.unlink()
    (place / "added-1.0.dist-info").rmdir()
    assert installation_stamp() == before
