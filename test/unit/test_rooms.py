"""The rooms: which imports their arrows allow, that all modules import, how long files are."""

import ast
import importlib
import statistics
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A room may import itself, what all may, and the rooms named here.
FOR_ALL = {"errors", "shared_objects"}
ARROWS = {
    "dialects": set[str](),
    "targets": set[str](),
    "solvers": set[str](),
    "runtime": set[str](),
    "frontends": {"dialects"},
    "analysis": {"dialects", "targets"},
    "passes": {"analysis", "solvers", "dialects", "targets"},
    "lowering": {"passes", "analysis", "dialects", "targets"},
}
ALL_ROOMS = {*ARROWS, "tuning", "tools"}
# The room without IR: not even the errors of the compiler.
WITHOUT_ERRORS = {"solvers"}
# The rooms that know no IR import none of the packages that bring one.
WITHOUT_IR = {"solvers", "runtime", "targets"}
IR_PACKAGES = {"xdsl", "torch_mlir", "mlir"}


def modules() -> dict[str, Path]:
    """Return every module of the import package by its dotted name."""
    found: dict[str, Path] = {}
    for room in ("", *sorted(ALL_ROOMS)):
        directory = ROOT / room if room else ROOT / "braid"
        files = directory.rglob("*.py") if room else directory.glob("*.py")
        for file in files:
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts if not room else ("braid", *parts))
            found[name.removesuffix(".__init__")] = file
    return found


MODULES = modules()


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every import in the file, those inside functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield node.lineno, module
            if module == "braid":
                yield from ((node.lineno, f"braid.{alias.name}") for alias in node.names)


def violation(room: str, module: str) -> str | None:
    """Say what is wrong with a module of `room` importing `module`, None if nothing is."""
    parts = module.split(".")
    if module.startswith("."):
        return "relative import"
    if parts[0] in ALL_ROOMS:
        return "import of a room by its folder; its name is braid." + parts[0]
    if room in WITHOUT_IR and parts[0] in IR_PACKAGES:
        return "IR in a room that knows none"
    if parts[0] != "braid" or room not in ARROWS or module == "braid":
        return None
    if parts[1] == "errors" and room in WITHOUT_ERRORS:
        return "import of braid"
    return None if parts[1] in {room, *FOR_ALL, *ARROWS[room]} else "import against the arrows"


def test_every_room_is_linked() -> None:
    linked = {p.name for p in (ROOT / "braid").iterdir() if p.is_symlink()}
    assert linked == ALL_ROOMS
    for room in ALL_ROOMS:
        assert (ROOT / "braid" / room).readlink() == Path("..") / room


def test_every_room_is_type_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rooms = {f"braid/{room}" for room in ALL_ROOMS}
    assert set(settings["tool"]["pyright"]["include"]) == {"braid", *rooms}


@pytest.mark.parametrize(
    ("room", "module", "allowed"),
    [
        ("passes", "braid.analysis.liveness", True),
        ("passes", "braid.lowering.cpu", False),
        ("passes", "braid.runtime", False),
        ("passes", "braid.tuning", False),
        ("dialects", "braid.errors", True),
        ("solvers", "braid.errors", False),
        ("solvers", "numpy", True),
        ("solvers", "xdsl.ir", False),
        ("runtime", "braid.dialects", False),
        ("tools", "braid.runtime", True),
        ("tuning", "braid.lowering", True),
        ("tools", "tools.opt", False),
        ("tools", ".opt", False),
    ],
)
def test_the_rule(room: str, module: str, allowed: bool) -> None:
    assert (violation(room, module) is None) == allowed


def test_rooms_import_along_their_arrows() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}: {problem}"
        for name, file in MODULES.items()
        if name.count(".") > 0
        for line, module in imports(file)
        if (problem := violation(name.split(".")[1], module))
    ]
    assert not wrong, "\n".join(wrong)


def test_backends_share_only_what_is_common() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for name, file in MODULES.items()
        if name.startswith("braid.lowering.") and name.count(".") > 2
        for line, module in imports(file)
        if module.startswith("braid.lowering.")
        if module.split(".")[2] not in {"common", name.split(".")[2]}
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_module_imports(name: str) -> None:
    importlib.import_module(name)


def test_files_are_short() -> None:
    lengths = [len(file.read_text(encoding="utf-8").splitlines()) for file in MODULES.values()]
    assert statistics.median(lengths) <= 150
