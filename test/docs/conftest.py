"""An environment as a reader of the documentation has it: tools, models, and its packages."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "docs" / "examples" / name for name in ("toy", "c_backend")]
TOOLS = {"braid": "-m braid.tools.cli", "braid-opt": "-m braid.tools.braid_opt", "python": ""}


def _install(project: Path, site: Path) -> None:
    """What pip does for a package of pure Python: metadata with its entry points, and a path."""
    metadata = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = metadata["name"], metadata["version"]
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines: list[str] = []
    for group, entries in metadata["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which `braid`, `braid-opt` and the packages are found."""
    directory = tmp_path_factory.mktemp("environment")
    for tool, arguments in TOOLS.items():
        script = directory / "bin" / tool
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(0o755)
    for package in PACKAGES:
        _install(package, directory / "site")
    return {
        **os.environ,
        "PATH": os.pathsep.join(
            [str(directory / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "PYTHONPATH": os.pathsep.join(map(str, (directory / "site", *PACKAGES, ROOT))),
        "BRAID_CACHE_DIR": str(directory / "cache"),
        "COLUMNS": "120",
    }


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the models of the documentation."""
    directory = tmp_path_factory.mktemp("models")
    script = ROOT / "docs" / "examples" / "make_models.py"
    subprocess.run([sys.executable, script], cwd=directory, check=True)
    return directory


@pytest.fixture
def workplace(models: Path, tmp_path: Path) -> Path:
    """A fresh directory with the models, and `docs` and `runtime` as in a checkout."""
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    for name in ("docs", "runtime"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path
