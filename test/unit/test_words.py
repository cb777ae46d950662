"""Names and docstrings of code are in the words of the field.

Docstrings begin with a capital, end with a period and, of functions, are imperative: ruff checks
that (`make lint`).
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("support", "solvers", "analysis", "targets", "passes", "lowering", "tuning", "runtime")

WORDS = {
    "affair": "the task of, decided by",
    "behind": "after, beyond",
    "believed": "trusted",
    "choosy": "restricted",
    "heed": "follow, respect",
    "made up": "synthetic",
    "products of bytes": "int8 products, int8 matmuls",
    "room": "memory, space, capacity, a free slot",
    "standing": "formed by the backend, existing",
    "told": "given, reported, known",
    "without more ado": "by default",
}
"""What stands in the place of words that are not used."""

EXCEPT = {
    "lowering/fpga/rtl": "room",  # the name of a signal of designs, which stand in records
    "targets/backend.py": "standing",  # the former name of `BackendGroup`
}

ANY = re.compile("|".join(word.replace(" ", r"[\s_]+") for word in WORDS), re.IGNORECASE)


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names that are defined, as words, and docstrings, by their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, _words_of(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, _words_of(name)
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, " ".join(text.split())
            case _:
                pass


def _words_of(name: str) -> str:
    return " ".join(re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name))


def _wrong(path: str, source: str) -> Iterator[str]:
    kept = next((word for prefix, word in EXCEPT.items() if path.startswith(prefix)), "")
    if not ANY.search(source):  # parsing takes longer
        return
    for line, text in _texts(ast.parse(source)):
        for word, instead in WORDS.items():
            if word != kept and re.search(rf"\b{word}s?\b", text, re.IGNORECASE):
                yield f"{path}:{line}: '{word}' in '{text[:60]}'; say {instead}"


def _files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *(f"{package}/*.py" for package in PACKAGES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.split() if not path.startswith("lowering/host/")]


def test_words_that_are_not_used() -> None:
    found = [wrong for path in _files() for wrong in _wrong(path, (ROOT / path).read_text())]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    "source",
    ["def made_up_inputs(): ...", "class Choosy: ...", "room = 1", '"""What is told."""'],
)
def test_a_word_is_found(source: str) -> None:
    assert [*_wrong("passes/x.py", source)]
