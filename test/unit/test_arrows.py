"""Which packages may import which, at every depth of folders, and that all modules import."""

import ast
import importlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache
from os.path import commonpath
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A package may import itself and those named here: one chain, with three packages beside it.
_BELOW_LOWERING = {"passes", "targets", "analysis", "solvers", "dialects", "support"}
_BELOW_TUNING = {"driver", "lowering", "frontends", "runtime", *_BELOW_LOWERING}
ARROWS = {
    "support": set[str](),
    "solvers": set[str](),
    "dialects": {"support"},
    "frontends": {"dialects", "support"},
    "analysis": {"dialects", "support"},
    "runtime": {"support"},
    "targets": {"analysis", "dialects", "support"},
    "passes": {"targets", "analysis", "solvers", "dialects", "support"},
    "lowering": _BELOW_LOWERING,
    "driver": {"lowering", "frontends", "runtime", *_BELOW_LOWERING},
    "onnxruntime": {"driver", "frontends", "runtime", "support"},
    "tuning": _BELOW_TUNING,
}
# Where the library is that was compiled for a package with native code.
FOR_NATIVE_CODE = {"solvers": {"braid.support.shared_objects"}}
TOOLS = "tools"
PACKAGES = {*ARROWS, TOOLS}
# The modules of the folder `braid` itself; only the tools import them.
PUBLIC_API = ""
PUBLIC_MODULES = {
    *("braid", "braid.client", "braid.compiler", "braid.embedding", "braid.extend"),
    *(
        "braid.interpreted",
        "braid.jax_export",
        "braid.torch_backend",
        "braid.torch_comparison",
        "braid.torch_decompositions",
        "braid.torch_export",
    ),
    *("braid.torch_exporter", "braid.torch_graph", "braid.universe", "braid.upstream_dialect"),
}
# What `torch.compile` and `from_torch` import, where PyTorch is installed.
FOR_TORCH = {
    "braid.torch_backend",
    "braid.torch_comparison",
    "braid.torch_decompositions",
    "braid.torch_graph",
}
# These packages stand in `braid` itself, the others at the top level, linked into it. A folder
# `onnxruntime` there would be taken for ONNX Runtime wherever that folder is the current one.
DRIVER = "driver"
UNLINKED = {DRIVER, "onnxruntime"}
LINKED = PACKAGES - UNLINKED
# The packages that know no IR import none of what brings one.
WITHOUT_IR = {"support", "solvers", "runtime"}
IR_PACKAGES = {"xdsl", "torch_mlir", "mlir"}
# Which bindings of upstream MLIR are installed is this module's secret.
BINDINGS = "braid.support.mlir_bindings"
# Backends know what is common, the builders of kernels and the host program, not each other.
SHARED_BY_BACKENDS = {"common", "emit", "host"}


def modules() -> dict[str, Path]:
    """Return every module of the import package by its dotted name, through all links."""
    found: dict[str, Path] = {}
    for directory in (ROOT / "braid", *(ROOT / "braid" / name for name in sorted(LINKED))):
        for file in directory.rglob("*.py"):
            if "wheel" in file.relative_to(directory).parts:
                continue  # the distribution `braid_runtime`, which is made of the package
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = file
    return found


MODULES = modules()
FOLDERS = {name for name, file in MODULES.items() if file.name == "__init__.py"}


# The trees of all files would take hundreds of MB, and what is found in them takes none.
@cache
def found_in(file: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return what a file imports and which modules it names, each as (line, module)."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    return list(_imports(nodes)), list(_named_modules(nodes))


def imports(file: Path) -> list[tuple[int, str]]:
    """Return (line, module) of every import in the file, those inside functions too."""
    return found_in(file)[0]


def named_modules(file: Path) -> list[tuple[int, str]]:
    """Return (line, module) of the modules that string literals name, without docstrings."""
    return found_in(file)[1]


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names = [f"{module}.{alias.name}" for alias in node.names]
            submodules = [name for name in names if name in MODULES]
            if len(submodules) < len(names) or module not in FOLDERS:
                yield node.lineno, module
            yield from ((node.lineno, name) for name in submodules)


# A module that is named in text is imported later, or by another process.
NAMED_MODULE = re.compile(rf"\bbraid\.(?:{'|'.join(sorted(PACKAGES))})(?:\.\w+)+")


def _named_modules(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in described:
            for match in NAMED_MODULE.finditer(node.value):
                yield node.lineno, match.group(0)


def package_of(module: str) -> str:
    """Return the package of a module; the public API has no name."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in PACKAGES else PUBLIC_API


def violation(package: str, module: str) -> str | None:
    """Say what is wrong with a module of `package` importing `module`, None if nothing is."""
    parts = module.split(".")
    if module.startswith("."):
        return "relative import"
    if parts[0] in LINKED:
        return "import of a package by its folder; its name is braid." + parts[0]
    if package in WITHOUT_IR and parts[0] in IR_PACKAGES:
        return "IR in a package that knows none"
    if parts[0] != "braid" or package == TOOLS or module == "braid":
        return None
    if package == PUBLIC_API:
        return "import of the tools by the public API" if parts[1] == TOOLS else None
    allowed = parts[1] in {package, *ARROWS[package]} or module in FOR_NATIVE_CODE.get(package, ())
    return None if allowed else "import against the arrows"


def circle(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """Return some circle of a graph, with the first node again at its end; empty if there is
    none."""
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


def test_every_package_is_linked() -> None:
    linked = {p.name for p in (ROOT / "braid").iterdir() if p.is_symlink()}
    assert linked == LINKED
    for package in LINKED:
        assert (ROOT / "braid" / package).readlink() == Path("..") / package


def test_no_links_inside_of_packages() -> None:
    """A second name of a folder would be a way round the arrows."""
    folders = [
        *(ROOT / package for package in LINKED),
        *(ROOT / "braid" / package for package in UNLINKED),
    ]
    links = [link for folder in folders for link in folder.rglob("*") if link.is_symlink()]
    assert not [link for link in links if link.is_dir()]


def test_every_package_is_type_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {f"braid/{package}" for package in LINKED}
    assert set(settings["tool"]["pyright"]["include"]) == {"braid", *packages}


def test_what_is_beside_the_packages_is_public() -> None:
    assert {name for name in MODULES if package_of(name) == PUBLIC_API} == PUBLIC_MODULES


@pytest.mark.parametrize(
    ("package", "module", "allowed"),
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
        ("driver", "braid.lowering.host.stages", True),
        ("driver", "braid.runtime.model", True),
        ("driver", "braid.tuning.search", False),
        ("driver", "braid.compiler", False),
        ("driver", "braid", True),
        ("onnxruntime", "braid.driver.compile", True),
        ("onnxruntime", "braid.tuning.search", False),
        ("onnxruntime", "onnxruntime", True),
        ("tuning", "braid.driver.lower_source", True),
        ("tuning", "braid.universe", False),
        ("", "braid.tuning.search", True),
        ("", "braid.tools.app", False),
        ("tools", "tools.opt", False),
        ("tools", ".opt", False),
    ],
)
def test_the_rule(package: str, module: str, allowed: bool) -> None:
    assert (violation(package, module) is None) == allowed


def test_packages_import_along_their_arrows() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}: {problem}"
        for name, file in MODULES.items()
        for line, module in imports(file)
        if (problem := violation(package_of(name), module))
    ]
    assert not wrong, "\n".join(wrong)


def part(folder: str, module: str) -> str:
    """Return the module or folder directly inside of `folder` that is or contains `module`."""
    depth = folder.count(".") + 2
    return ".".join(module.split(".")[:depth])


def parts_of_folders(arrows: Iterable[tuple[str, str]]) -> dict[str, dict[str, set[str]]]:
    """For every folder, which of its modules and folders import which other ones of it."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importing, imported in arrows:
        shared = commonpath([importing.replace(".", "/"), imported.replace(".", "/")])
        folder = shared.replace("/", ".")
        if folder not in (importing, imported):
            found[folder][part(folder, importing)].add(part(folder, imported))
    return found


def own_files_and_folders(
    parts: Mapping[str, Iterable[str]], folders: Container[str]
) -> dict[str, set[str]]:
    """Return the same with all modules of the folder as one part."""
    found: dict[str, set[str]] = defaultdict(set)
    for importing, others in parts.items():
        own = importing if importing in folders else "its own files"
        found[own] |= {each if each in folders else "its own files" for each in others} - {own}
    return found


def arrows(of: Callable[[Path], Iterable[tuple[int, str]]]) -> Iterator[tuple[str, str]]:
    """Yield which module imports, or names in text, which other one."""
    for name, file in MODULES.items():
        yield from ((name, m) for _, m in of(file) if m in MODULES and m not in {name, "braid"})


def test_no_folders_or_modules_import_each_other() -> None:
    imported = parts_of_folders(arrows(imports))
    imported_or_named = parts_of_folders((*arrows(imports), *arrows(named_modules)))
    assert len(imported) > 50
    circles = {
        folder: circle(imported_or_named.get(folder, {}))
        or circle(own_files_and_folders(imported.get(folder, {}), FOLDERS))
        for folder in sorted(FOLDERS)
    }
    wrong = [f"{folder}: {' -> '.join(found)}" for folder, found in circles.items() if found]
    assert not wrong, "\n".join(wrong)


def test_circles_are_seen_at_every_depth() -> None:
    around = [("a.b.c.x", "a.b.d.x"), ("a.b.d.y", "a.b.c.y"), ("a.b.c.z", "a.z")]
    parts = parts_of_folders(around)
    assert circle(parts["a.b"]) == ["a.b.c", "a.b.d", "a.b.c"]
    assert not circle(parts["a"])
    inside = parts_of_folders([("a.b.x", "a.b.c.x"), ("a.b.c.y", "a.b.z")])["a.b"]
    assert not circle(inside)
    assert circle(own_files_and_folders(inside, {"a.b", "a.b.c"}))


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
WITHOUT_BACKENDS = {
    "braid.compiler",
    *(name for name in MODULES if package_of(name) == DRIVER),
    "braid.tuning.tune_model",
    "braid.tools.commands.compile",
    "braid.tools.commands.explain",
    "braid.tools.commands.run",
    "braid.tools.explain.walk",
}


def test_no_text_goes_round_the_arrows() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for name, file in MODULES.items()
        for line, module in named_modules(file)
        if any(module == known or module.startswith(f"{known}.") for known in MODULES)
        and violation(package_of(name), module)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_description_names_a_module() -> None:
    """What a file of data names would be imported whatever the arrows say."""
    files = [f for package in sorted(LINKED) for f in (ROOT / package).rglob("*.toml")]
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
        if name in WITHOUT_BACKENDS
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
    if name in FOR_TORCH:
        pytest.importorskip("torch")
    importlib.import_module(name)
