"""An environment as a reader of the documentation has it: tools, models, and its packages."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.fork_tools import start_tools

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "docs" / "examples" / name for name in ("toy", "c_backend")]
TOOLS = {"braid": "braid.tools.cli", "braid-opt": "braid.tools.braid_opt"}


def _install(project: Path, site: Path) -> None:
    """Install a pure Python package as pip does: metadata with its entry points, and a path."""
    metadata = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = metadata["name"], metadata["version"]
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines: list[str] = []
    for group, entries in metadata["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def _write_script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment variables with which `braid`, `braid-opt` and the packages are found.

    The two run in forks of a process that has imported them, unless Python's path is another.
    """
    directory = tmp_path_factory.mktemp("environment")
    for package in PACKAGES:
        _install(package, directory / "site")
    paths = os.pathsep.join(map(str, (directory / "site", *PACKAGES, ROOT)))
    found = {
        **os.environ,
        "PATH": os.pathsep.join(
            [str(directory / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "PYTHONPATH": paths,
        "BRAID_CACHE_DIR": str(directory / "cache"),
        "COLUMNS": "120",
    }
    with tempfile.TemporaryDirectory(prefix="braid-docs-") as sockets:
        forked = start_tools(Path(sockets, "tools"), found)
        _write_script(directory / "bin" / "python", f'exec "{sys.executable}" "$@"')
        for tool, module in TOOLS.items():
            plain = f'"{sys.executable}" -m {module} "$@"'
            text = f'[ "$PYTHONPATH" = "{paths}" ] || exec {plain}\nexec {forked} {module} "$@"'
            _write_script(directory / "bin" / tool, text)
        yield found


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the models of the documentation."""
    directory = tmp_path_factory.mktemp("models")
    script = ROOT / "docs" / "examples" / "make_models.py"
    subprocess.run([sys.executable, script], cwd=directory, check=True)
    return directory


@pytest.fixture
def workplace(models: Path, tmp_path: Path) -> Path:
    """Return a fresh directory with the models, and `docs` and `runtime` as in a checkout."""
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    for name in ("docs", "runtime"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path
