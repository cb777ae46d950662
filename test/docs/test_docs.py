"""Every example of the documentation runs, on every page in order, as for a reader.

A block in `mlir` is parsed and verified by braid-opt, `python` and `bash` are run, and `console`
is run and its output compared: a line `...` stands for any lines, `…` for anything in a line.
See `blocks.py` for the marks that say otherwise.
"""

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


blocks = _module(Path(__file__).with_name("blocks.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Blocks that no test can run: their page and how often, with the reason on the page.
NOT_RUN = {
    "README.md": ["installs into a new environment"],
    "docs/benchmarks/gpu.md": ["compiling takes hours, and the last command needs a GPU"],
    "docs/benchmarks/index.md": ["needs the peers, and takes minutes"],
    "docs/concepts/fpgas.md": ["needs a model", "needs a model", "needs a model"],
    "docs/concepts/gpus.md": ["needs a GPU"],
    "docs/concepts/tuning.md": ["takes minutes"],
    "docs/concepts/targets-and-costs.md": [
        "takes most of a minute",
        "takes a minute",
        "needs a cross compiler",
    ],
    "docs/conformance.md": ["it needs the suites"],
    "docs/editors.md": ["installs packages", *["configures an editor"] * 4],
    "docs/embedding.md": [
        "it takes an environment of its own, which test/unit/test_runtime_wheel.py makes",
        "a fragment",
    ],
    "docs/extending/add-an-op.md": ["installs packages"],
    "docs/getting-started.md": ["installs packages"],
    "docs/installing.md": ["installs packages"],
    "docs/language-models.md": [
        "a part of the loop above",
        "goes on where the example above ends",
        "decoder.onnx stands for a model of yours",
        "the models are not part of braid",
    ],
    "docs/service.md": [
        "installs packages",
        "needs a server",
        "needs a server",
        "needs a server",
        "needs a server",
    ],
}
# Languages of blocks that have nothing to run.
PLAIN = {"text", "c", "json"}


def run(command: str, environment: Mapping[str, str], directory: Path) -> str:
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    assert result.returncode == 0, f"$ {command}\n{result.stdout}"
    return result.stdout


def _run_console(text: str, environment: Mapping[str, str], directory: Path) -> None:
    for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = session.partition("\n")
        while command.endswith("\\"):
            rest, _, expected = expected.partition("\n")
            command = f"{command}\n{rest}"
        output = run(command, environment, directory)
        assert fits(output, expected), f"$ {command}\n{output}\nexpected:\n{expected}"


def fits(output: str, expected: str) -> bool:
    """Whether `output` equals a console block; a block without lines shows nothing."""
    patterns = [
        r"(?:.*\n)*" if line.strip() == "..." else _line_pattern(line) + r"[ \t]*\n"
        for line in expected.splitlines()
        if line.strip()
    ]
    shown = "".join(f"{line}\n" for line in output.splitlines() if line.strip())
    return not patterns or re.fullmatch("".join(patterns), shown) is not None


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))


def _run_blocks(page: Sequence, environment: Mapping[str, str], directory: Path) -> None:
    for block in page:
        try:
            match block.language:
                case "python":
                    (directory / "block.py").write_text(block.text)
                    run("python block.py", environment, directory)
                case "bash":
                    run(block.text, environment, directory)
                case "console":
                    _run_console(block.text, environment, directory)
                case "toml":
                    tomllib.loads(block.text)
                case "mlir":
                    pass  # All of a page at once, see below.
                case other:
                    assert other in PLAIN, f"blocks in '{other}' are not tested; mark them"
        except AssertionError as error:
            raise AssertionError(f"{block}: {error}") from None


def _parse_all(modules: Iterable, environment: Mapping[str, str], directory: Path) -> None:
    text = "\n// -----\n".join(block.text for block in modules)
    if text:
        (directory / "blocks.mlir").write_text(text)
        run("braid-opt --split-input-file blocks.mlir -o parsed.mlir", environment, directory)


def shows(text: str, source: str) -> bool:
    """Return whether `text` is in `source`, where its lines `...` stand for omitted ones."""
    parts = map(_flat, re.split(r"^\s*\.\.\.$", text, flags=re.MULTILINE))
    return re.search(r"\n(?:.*\n)*?".join(map(re.escape, parts)), _flat(source)) is not None


def _flat(text: str) -> str:
    """Return the lines without indentation and blank ones: a page may show a method alone."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_run(path: Path, environment: dict[str, str], workplace: Path) -> None:
    page = blocks.blocks_of(path, ROOT)
    for block in page:
        if block.mark == "file":
            (workplace / block.argument).write_text(block.text)
        elif block.mark == "from":
            source = (ROOT / block.argument).read_text(encoding="utf-8")
            assert shows(block.text, source), f"{block}: not in {block.argument}"
    unmarked = [block for block in page if not block.mark]
    modules = [b for b in page if b.language == "mlir" and b.mark in ("", "file")]
    _parse_all(modules, environment, workplace)
    _run_blocks(unmarked, environment, workplace)


def test_what_is_not_run_is_listed() -> None:
    found: dict[str, list[str]] = {}
    for path in PAGES:
        for block in blocks.blocks_of(path, ROOT):
            if block.mark == "not run":
                found.setdefault(block.page, []).append(block.argument)
    assert found == NOT_RUN


def test_output_is_compared() -> None:
    assert fits("a 1.5 s\nb\nc\n", "a … s\n...\nc\n")
    assert not fits("a\nb\nc\n", "a\nc\n")
    assert not fits("a\n", "b\n")


def test_excerpts_are_compared() -> None:
    source = "class A:\n    x = 1\n    y = 2\n\n    z = 3\n"
    assert shows("class A:\n    ...\n    z = 3\n", source) and shows("y = 2\nz = 3", source)
    assert not shows("x = 1\nz = 3\n", source) and not shows("z = 3\n...\ny = 2\n", source)


def test_the_reference_has_every_op_pass_command_and_function() -> None:
    from braid.dialects.braid import Braid
    from braid.passes.infrastructure.registry import pass_table

    pages = _module(ROOT / "docs" / "hooks" / "reference.py").pages()
    names = [*(op.name for op in Braid.operations), *(a.name for a in Braid.attributes)]
    assert all(f"### `{name}`\n\n" in pages["reference/dialect.md"] for name in names)
    assert all(f"### `{name}`\n\n" in pages["reference/passes.md"] for name in pass_table())
    commands = pages["reference/cli.md"]
    for name in ("compile", "run", "explain", "verify"):
        assert f"## `braid {name}`\n\n```text\nUsage: braid {name}" in commands
    assert "--split-input-file" in commands
    import braid
    import braid.extend

    names = {*braid.__all__, *braid.extend.__all__}
    assert all(f"### `{name}`\n\n" in pages["reference/python.md"] for name in names)
    headers = ROOT / "runtime" / "native" / "include" / "braid"
    text = "".join((headers / f"{name}.h").read_text() for name in ("runtime", "trace", "device"))
    functions = re.findall(r"^BRAID_API [^;]*?(braid_\w+)\(", text, re.M)
    shown = re.findall(
        r"`(braid_\w+)`", "".join(re.findall(r"^### .*", pages["reference/c.md"], re.M))
    )
    assert len(functions) > 30 and shown == functions
    empty = [name for name, text in pages.items() if re.search(r"^### .*\n\n(\n|#|\Z)", text, re.M)]
    assert not empty


def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--strict",
        "--site-dir",
        tmp_path,
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "reference" / "dialect.html").exists()
