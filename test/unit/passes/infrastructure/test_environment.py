"""What passes do follows from the module alone, whatever the environment says."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PROGRAM = Path(__file__).with_name("run_all_passes.py")
NATIVE = ROOT / "runtime" / "native"

OTHER_VALUES = {
    "BRAID_CACHE_DIR": "{folder}/others",
    "BRAID_CACHE_LIMIT": "1KiB",
    "BRAID_CUDA_EMULATED": "{folder}/missing",
    "BRAID_CUDA_LIBRARY": "{folder}/missing.so",
    "BRAID_DEVICE_PATH": "{folder}",
    "BRAID_EMULATE": "1",
    "BRAID_NUMERICS": "strict",
    "BRAID_PRECISION": "bf16",
    "BRAID_RECORDS": "sqlite:///{folder}/others.sqlite",
    "BRAID_RTL_TRACE": "{folder}/trace",
    "BRAID_TOKEN": "secret",
    "BRAID_VERIFY_DECISIONS": "1",
    "CC": "missing-cc",
    "CUDA_HOME": "{folder}",
    "CXX": "missing-cxx",
    "OPENBLAS_THREAD_TIMEOUT": "5",
    "TMPDIR": "{folder}",
}
"""A value of each variable that differs from what holds without it."""

CONTEXT_VARIABLES = {
    "granted_sizes",  # what shapes take for granted, which passes write down
    "braid_diagnostic_handler",  # who hears what passes say
    "braid_reporter",  # how a command says what it has found
    "braid_progress_listener",  # who hears how far a compilation is
    "emulated",  # whether an artifact that is loaded runs on the host instead of missing devices
    "end_wanted",  # who may end a run
    "caller_is_alone",  # whether a thread that exports from PyTorch is waited for by its caller
    "door",  # what messages call options: keywords, flags or entries
    "given_records",  # what was measured, which stands in the user's records otherwise
    "remarks",  # who hears what passes decide
    "run_seconds",  # how long a run may take
    "verify_decisions",  # whether decisions are checked, which changes none
}


def test_every_variable_has_another_value() -> None:
    assert set(variables()) == OTHER_VALUES.keys()


def test_passes_ask_no_environment(tmp_path: Path) -> None:
    """Of all variables at once; the slow test tells which one it is."""
    assert results({}, tmp_path) == results(OTHER_VALUES, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_VALUES)
def test_passes_do_not_ask(name: str, tmp_path: Path) -> None:
    assert results({}, tmp_path) == results({name: OTHER_VALUES[name]}, tmp_path)


def test_context_variables_bear_on_no_code() -> None:
    assert set(context_variables()) == CONTEXT_VARIABLES


def results(values: Mapping[str, str], folder: Path) -> dict[str, list[str]]:
    """Return what all passes leave in a process with these values of variables."""
    environment = {name: os.environ[name] for name in os.environ if name not in OTHER_VALUES}
    environment |= {"BRAID_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    environment |= {name: value.format(folder=folder) for name, value in values.items()}
    path = folder / "results.json"
    subprocess.run([sys.executable, str(PROGRAM), str(path)], env=environment, check=True)
    return json.loads(path.read_text(encoding="utf-8"))


def variables() -> set[str]:
    """Return the names of the variables of the environment that braid's sources read."""
    native = [f for f in NATIVE.rglob("*.c") if "examples" not in f.parts]
    found = {name for f in native for name in _GETENV.findall(f.read_text(encoding="utf-8"))}
    return found.union(*map(read_by, sources()))


def sources() -> Iterator[Path]:
    """Yield all modules of braid."""
    for folder, _, names in os.walk(ROOT / "braid", followlinks=True):
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def context_variables() -> Iterator[str]:
    """Yield the names that context variables are made with."""
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _CONTEXT_VARIABLE:
                name = node.args[0]
                if isinstance(name, ast.Constant):  # `scope_variable` makes one with its own name
                    yield str(name.value)


def read_by(file: Path) -> Iterator[str]:
    """Yield the variables that a module names, or asks `os.environ` for."""
    text = file.read_text(encoding="utf-8")
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and _OWN.fullmatch(str(node.value)):
            yield str(node.value)
        elif (key := asked_for(node)) is not None:
            yield key.value if isinstance(key, ast.Constant) else constant(module, key)


def asked_for(node: ast.AST) -> ast.expr | None:
    """Return the key of `os.environ[key]`, `os.environ.get(key)` and their like."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=key):
            return key
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ")), args=[key, *_]):
            return key
        case ast.Call(func=ast.Attribute(attr="getenv"), args=[key, *_]):
            return key
        case _:
            return None


def constant(module: str, key: ast.expr) -> str:
    """Return the value of a module's constant."""
    assert isinstance(key, ast.Name), f"{module} asks for a variable that is not named there"
    return getattr(import_module(module), key.id)


_CONTEXT_VARIABLE = ("ContextVar", "contextvars.ContextVar", "scope_variable")
_OWN = re.compile(r"BRAID_[A-Z_]+")
_GETENV = re.compile(r'getenv\("(\w+)"\)')
