"""The package of kernels: families at the top, what they are made of in folders below them."""

import ast
import re
from pathlib import Path

import braid.lowering.cpu.kernels
from braid.lowering.cpu.families import cpu_families
from braid.targets.kernels.kernel_family import LIBRARIES
from test.machines import AVX512

PACKAGE = braid.lowering.cpu.kernels.__name__
ROOM = Path(braid.lowering.cpu.kernels.__path__[0])
FAMILIES = {file.stem for file in ROOM.glob("*.py")} - {"__init__"}


def parts_used(name: str) -> set[str]:
    """Return the families and folders of the package that a family or folder imports."""
    files = [ROOM / f"{name}.py"] if name in FAMILIES else (ROOM / name).glob("*.py")
    modules = {
        node.module
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    inner = {module.removeprefix(f"{PACKAGE}.") for module in modules if PACKAGE in module}
    return {module.split(".")[0] for module in inner} - {name}


def test_every_file_is_a_family_that_is_listed() -> None:
    own = [f for f in cpu_families(AVX512) if f.name not in LIBRARIES]
    modules = {type(family).__module__ for family in own}
    assert modules == {f"{PACKAGE}.{name}" for name in FAMILIES}


def test_folders_import_only_those_below_them_and_no_families() -> None:
    folders = re.findall(r"^- `(\w+)`:", braid.lowering.cpu.kernels.__doc__ or "", re.MULTILINE)
    assert set(folders) == {path.parent.name for path in ROOM.glob("*/__init__.py")}
    used = {folder: parts_used(folder) for folder in folders}
    for place, folder in enumerate(folders):
        assert used[folder] <= set(folders[place + 1 :]), folder
    for family in FAMILIES:
        assert parts_used(family) <= set(folders), family
