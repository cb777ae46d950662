"""The rooms: which imports their arrows allow, and that all modules import."""

import ast
import importlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A room may import itself and the rooms named here; DESIGN: one chain, with three rooms beside it.
ARROWS = {
    "support": set[str](),
    "solvers": set[str](),
    "dialects": {"support"},
    "frontends": {"dialects", "support"},
    "analysis": {"dialects", "support"},
    "runtime": {"support"},
    "targets": {"analysis", "dialects", "support"},
    "passes": {"targets", "analysis", "solvers", "dialects", "support"},
    "lowering": {"passes", "targets", "analysis", "solvers", "dialects", "support"},
}
# Where the library is that was compiled for a room with native code.
FOR_NATIVE_CODE = {"solvers": {"braid.support.shared_objects"}}
# These join the others: tuning measures what lowering makes, tools wire, the face shows.
ABOVE = {"tuning", "tools"}
ALL_ROOMS = {*ARROWS, *ABOVE}
FACE = ""
# The rooms that know no IR import none of the packages that bring one.
WITHOUT_IR = {"support", "solvers", "runtime"}
IR_PACKAGES = {"xdsl", "torch_mlir", "mlir"}
# Which bindings of upstream MLIR are installed is this module's secret.
BINDINGS = "braid.support.mlir_bindings"
# Backends know what is common and the host program, not each other.
SHARED_BY_BACKENDS = {"common", "emit", "host"}


def modules() -> dict[str, Path]:
    """Return every module of the import package by its dotted name, through all links."""
    found: dict[str, Path] = {}
    for directory in (ROOT / "braid", *(ROOT / "braid" / room for room in sorted(ALL_ROOMS))):
        for file in directory.rglob("*.py"):
            if "wheel" in file.relative_to(directory).parts:
                continue  # the package `braid_runtime`, which is made of the room
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = file
    return found


MODULES = modules()
PACKAGES = {name for name, file in MODULES.items() if file.name == "__init__.py"}


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every import in the file, those inside functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names = [f"{module}.{alias.name}" for alias in node.names]
            submodules = [name for name in names if name in MODULES]
            if len(submodules) < len(names) or module not in PACKAGES:
                yield node.lineno, module
            yield from ((node.lineno, name) for name in submodules)


def room_of(module: str) -> str:
    """The room of a module of the import package; the face has no name."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ALL_ROOMS else FACE


def folder_of(module: str) -> str:
    """The folder of its room, or of the face, that a module is in; itself if it is in none."""
    depth = 2 if room_of(module) == FACE else 3
    return ".".join(module.split(".")[:depth])


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
    allowed = parts[1] in {room, *ARROWS[room]} or module in FOR_NATIVE_CODE.get(room, ())
    return None if allowed else "import against the arrows"


def circle(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """Some circle of a graph, the first node again at its end; empty if there is none."""
    done: set[str] = set()

    def search(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for other in sorted(arrows.get(node, ())):
            if found := search(other, [*path, node]):
                return found
        done.add(node)
        return []

    return next((found for node in sorted(arrows) if (found := search(node, []))), [])


def test_every_room_is_linked() -> None:
    linked = {p.name for p in (ROOT / "braid").iterdir() if p.is_symlink()}
    assert linked == ALL_ROOMS
    for room in ALL_ROOMS:
        assert (ROOT / "braid" / room).readlink() == Path("..") / room


def test_no_links_inside_of_rooms() -> None:
    """A second name of a folder would be a way round the arrows."""
    folders = [ROOT / room for room in ALL_ROOMS] + [ROOT / "braid" / "driver"]
    links = [link for folder in folders for link in folder.rglob("*") if link.is_symlink()]
    assert not [link for link in links if link.is_dir()]


def test_every_room_is_type_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rooms = {f"braid/{room}" for room in ALL_ROOMS}
    assert set(settings["tool"]["pyright"]["include"]) == {"braid", *rooms}


@pytest.mark.parametrize(
    ("room", "module", "allowed"),
    [
        ("passes", "braid.analysis.storage.liveness", True),
        ("passes", "braid.targets.costs", True),
        ("passes", "braid.lowering.cpu", False),
        ("passes", "braid.runtime", False),
        ("passes", "braid.tuning", False),
        ("passes", "braid.compiler", False),
        ("analysis", "braid.targets.machines.load", False),
        ("targets", "braid.analysis.storage", True),
        ("dialects", "braid.support.errors", True),
        ("solvers", "braid.support.errors", False),
        ("solvers", "numpy", True),
        ("solvers", "xdsl.ir", False),
        ("support", "xdsl.ir", False),
        ("runtime", "braid.dialects", False),
        ("lowering", "braid.runtime", False),
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
        for line, module in imports(file)
        if (problem := violation(room_of(name), module))
    ]
    assert not wrong, "\n".join(wrong)


def test_folders_of_a_room_do_not_import_each_other() -> None:
    arrows: dict[str, set[str]] = defaultdict(set)
    for name, file in MODULES.items():
        for _, module in imports(file):
            same_room = module.startswith("braid.") and room_of(module) == room_of(name)
            if same_room and folder_of(module) != folder_of(name):
                arrows[folder_of(name)].add(folder_of(module))
    assert not circle(arrows), " -> ".join(circle(arrows))


@pytest.mark.parametrize(
    ("arrows", "expected"),
    [
        ({"a": ["b"], "b": ["c"]}, []),
        ({"a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
    ],
)
def test_circles_are_found(arrows: dict[str, list[str]], expected: list[str]) -> None:
    assert circle(arrows) == expected


def test_backends_share_only_what_is_common() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for name, file in MODULES.items()
        if name.startswith("braid.lowering.") and name.count(".") > 2
        for line, module in imports(file)
        if module.startswith("braid.lowering.")
        if module.split(".")[2] not in {*SHARED_BY_BACKENDS, name.split(".")[2]}
    ]
    assert not wrong, "\n".join(wrong)


# What compiles for any target.
FACES_OF_COMPILATION = {
    "braid.compiler",
    "braid.driver.pipeline",
    "braid.tuning.tune_model",
    "braid.runtime.model",
    "braid.tools.commands.compile",
    "braid.tools.commands.explain",
    "braid.tools.commands.run",
    "braid.tools.explain.walk",
}

# A way round the arrows: a module named in text.
NAMED_MODULE = re.compile(rf"\bbraid\.(?:{'|'.join(sorted(ALL_ROOMS))})(?:\.\w+)+")


def named_modules(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of the modules that string literals name, without docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in described:
            for match in NAMED_MODULE.finditer(node.value):
                yield node.lineno, match.group(0)


def test_no_text_goes_round_the_arrows() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for name, file in MODULES.items()
        for line, module in named_modules(file)
        if any(module == known or module.startswith(f"{known}.") for known in MODULES)
        and violation(room_of(name), module)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_description_names_a_module() -> None:
    """What a file of data names would be imported whatever the arrows say."""
    files = [f for room in sorted(ALL_ROOMS) for f in (ROOT / room).rglob("*.toml")]
    assert files
    wrong = [
        f"{file.relative_to(ROOT)}: {match.group(0)}"
        for file in files
        for match in NAMED_MODULE.finditer(file.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_backend_is_named() -> None:
    """Only `lowering` has names of backends: all else asks the registry."""
    backends = {path.name for path in (ROOT / "lowering").iterdir() if path.is_dir()}
    names = {f"braid.lowering.{name}" for name in backends - SHARED_BY_BACKENDS}
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for name, file in MODULES.items()
        if name in FACES_OF_COMPILATION
        for line, module in imports(file)
        if ".".join(module.split(".")[:3]) in names
    ]
    assert not wrong, "\n".join(wrong)


def test_only_one_module_names_the_bindings() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for name, file in MODULES.items()
        if name != BINDINGS
        for line, module in imports(file)
        if module.split(".")[0] in IR_PACKAGES - {"xdsl"}
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_module_imports(name: str) -> None:
    importlib.import_module(name)
