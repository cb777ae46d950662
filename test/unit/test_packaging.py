"""braid is the same package from the checkout's root, installed editable, and from a wheel."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(p.name for p in (ROOT / "braid").iterdir() if p.is_symlink())
SUFFIXES = {".py", ".toml", ".html"}

# Prints where braid comes from, and fails unless the packages and the native libraries are usable.
PROBE = """
import importlib, sys
import braid
from braid.runtime.native import cpu_supports
from braid.solvers.ordering.native import load_library
for package in sys.argv[1:]:
    importlib.import_module("braid." + package)
assert not cpu_supports("no such feature")
assert load_library()
print(braid.__file__)
"""

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
OPTIONS = ["--no-build-isolation", "--no-deps"]


def probe(python: Path, directory: Path) -> Path:
    """Run the probe in `directory` and return the braid package that it found."""
    result = subprocess.run(
        [python, "-c", PROBE, *PACKAGES], cwd=directory, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return Path(result.stdout.strip()).parent


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Make a virtual environment with this one's packages, but not its braid; return its Python.

    This one's site directory is only a path there: its `.pth` files, and with them an editable
    braid, are not read.
    """
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = tmp_path.glob("venv/lib/python*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return tmp_path / "venv" / "bin" / "python"


def install(python: Path, *arguments: str | Path) -> None:
    """Install into that Python's environment, with what is here and without a network."""
    subprocess.run([*PIP, "--python", python, "install", *OPTIONS, *arguments], check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    build_dir = f"--config-settings=build-dir={directory / 'build'}"
    subprocess.run([*PIP, "wheel", *OPTIONS, build_dir, "-w", directory, ROOT], check=True)
    (path,) = directory.glob("*.whl")
    return path


def test_from_the_checkout(environment: Path) -> None:
    assert probe(environment, ROOT) == ROOT / "braid"


@pytest.mark.slow
def test_editable(environment: Path, tmp_path: Path) -> None:
    """An editable install finds the checkout's files, from anywhere."""
    install(environment, f"--config-settings=build-dir={tmp_path / 'build'}", "--editable", ROOT)
    assert probe(environment, tmp_path) == ROOT / "braid"


@pytest.mark.slow
def test_wheel(environment: Path, wheel: Path, tmp_path: Path) -> None:
    """A wheel's braid is whole without the checkout."""
    install(environment, wheel)
    package = probe(environment, tmp_path)
    assert package.is_relative_to(tmp_path)
    for script in ("braid", "braid-opt", "braid-lsp"):
        assert (environment.parent / script).is_file()


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"braid/{file.relative_to(ROOT)}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.suffix in SUFFIXES and not file.is_relative_to(ROOT / "runtime" / "wheel")
    } | {
        str(file.relative_to(ROOT))
        for file in (ROOT / "braid").rglob("*")
        if file.suffix in {".py", ".typed"}
    }
    assert {"braid/driver/compile.py", "braid/py.typed"} <= wanted
    assert wanted - names == set()
    assert {f"braid/runtime/libbraid_runtime.{kind}" for kind in ("so", "a")} <= names
    assert "braid/runtime/native/include/braid/runtime.h" in names
    assert "braid/solvers/libbraid_solvers.so" in names
    # Messages name pages of the documentation.
    pages = {f"braid/support/pages/{page.name}" for page in ROOT.glob("docs/extending/*.md")}
    assert pages and pages <= names
    # The runtime is built from its sources where a model is for another architecture.
    assert "braid/runtime/native/src/model.c" in names
    assert not [name for name in names if "/examples/" in name and name.endswith(".c")]


@pytest.mark.slow
def test_wheel_registers_with_xdsl(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (entry_points,) = [n for n in archive.namelist() if n.endswith("entry_points.txt")]
    assert "[xdsl.universe]\nbraid = braid.universe:UNIVERSE" in archive.read(entry_points).decode()
