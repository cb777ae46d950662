"""The modules for users: every name is there, is stable, and costs nothing until it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import braid
from braid import extend

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", extend.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(extend, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(extend.__file__).read_text())
    typed = {
        (node.module, alias.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    loaded = {(home, name) for home, names in extend._HOMES.items() for name in names}
    assert typed == loaded and sorted(name for _, name in loaded) == sorted(extend.__all__)


@pytest.mark.parametrize("package", ["toy", "c_backend"])
def test_the_packages_of_the_documentation_need_nothing_else(package: str) -> None:
    for file in (ROOT / "docs" / "examples" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("braid."):
                assert node.module == "braid.extend", f"{file}:{node.lineno}"


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"'braid\.extend' has no attribute 'GemmFamily'"):
        _ = extend.GemmFamily  # pyright: ignore


def test_dir_shows_what_is_public() -> None:
    code = "import braid.compiler, braid; print(*dir(braid))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == sorted(braid.__all__)
    assert dir(extend) == sorted(extend.__all__)


def test_a_dialect_does_not_load_the_code_generators() -> None:
    code = "import sys; from braid.extend import StructuredOp; print('llvmlite' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "False"
