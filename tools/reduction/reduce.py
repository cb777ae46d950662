"""Reduce a model file on which a command fails to the smallest one with the same failure."""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from braid.dialects.braid.attribute_names import PARAMETERS
from braid.driver.read_source import read_source
from braid.passes.infrastructure.context import make_context
from braid.support.errors import BraidError
from braid.support.input_files import path_beside, reason
from braid.tools.reduction import module_subset, onnx_subset
from braid.tools.reduction.command import Command, Symptom
from braid.tools.reduction.minimize import minimize
from braid.tools.terminal.printing import module_text


@dataclass
class Reduction:
    """The smallest file so far, and how many ops there were and are."""

    before: int
    after: int = 0
    runs: int = 0
    content: bytes = b""


@dataclass
class _Oracle:
    """Writes candidates to a file and runs the command on it."""

    command: Command
    symptom: Symptom
    file: Path
    progress: Callable[[int], None]
    runs: int = 0
    seen: dict[bytes, bool] = field(default_factory=dict[bytes, bool])

    def fails(self, content: bytes) -> bool:
        if content not in self.seen:
            self.runs += 1
            self.progress(self.runs)
            self.file.write_bytes(content)
            self.seen[content] = self.symptom.shows_in(self.command.run(self.file))
        return self.seen[content]


def reduce_model(
    path: Path, command: Command, symptom: Symptom, progress: Callable[[int], None]
) -> Reduction:
    """Shrink the model at `path`, an `.onnx` or `.mlir` file, as long as `symptom` shows.

    `progress` is told the number of runs of the command.

    Raises:
        BraidError: the model cannot be read, or does not show the symptom once it is rewritten.

    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"candidate{path.suffix}"
        oracle = _Oracle(command, symptom, file, progress)
        if path.suffix.lower() == ".onnx":
            reduction = _reduce_onnx(path, oracle)
        else:
            reduction = _reduce_module(path, oracle)
        reduction.runs = oracle.runs
        return reduction


def _reduce_onnx(path: Path, oracle: _Oracle) -> Reduction:
    try:
        whole = onnx.load(path)  # pyright: ignore[reportUnknownMemberType]  PathLike is unbound
        model = onnx_subset.with_types(whole)
    except Exception as error:
        raise BraidError(f"cannot read '{path}': {reason(error)}") from error
    nodes = list(range(len(model.graph.node)))

    def content(kept: list[int]) -> bytes:
        return onnx_subset.subset(model, kept).SerializeToString()

    _check(oracle.fails(content(nodes)), path)
    kept = minimize(nodes, lambda subset: oracle.fails(content(subset)))
    return Reduction(len(nodes), len(kept), content=content(kept))


def _reduce_module(path: Path, oracle: _Oracle) -> Reduction:
    context = make_context()
    module = read_source(context, path).module
    name = module.attributes.get(PARAMETERS)
    if isinstance(name, StringAttr):  # the candidates are in another directory
        _bring(path_beside(path, name.data), oracle.file.parent / name.data)
    before = len(module_subset.removable(module))
    _check(oracle.fails(_content(context, module)), path)
    smaller: ModuleOp | None = module
    while smaller is not None:
        module = _fewer_ops(context, smaller, oracle)
        candidates = module_subset.unwrapped(module)
        smaller = next((c for c in candidates if oracle.fails(_content(context, c))), None)
    after = len(module_subset.removable(module))
    return Reduction(before, after, content=_content(context, module))


def _bring(weights: Path, to: Path) -> None:
    """Place weights next to the candidates, by a hard link where possible."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(os.path.realpath(weights), to)
    except OSError:  # on another file system, or of another user
        shutil.copyfile(weights, to)


def _fewer_ops(context: Context, module: ModuleOp, oracle: _Oracle) -> ModuleOp:
    def candidate(kept: list[int]) -> ModuleOp:
        return module_subset.subset(module, kept)

    kept = minimize(
        module_subset.removable(module),
        lambda subset: oracle.fails(_content(context, candidate(subset))),
    )
    smaller = candidate(kept)
    return smaller if oracle.fails(_content(context, smaller)) else module


def _content(context: Context, module: ModuleOp) -> bytes:
    return module_text(context, module).encode()


def _check(fails: bool, path: Path) -> None:
    if not fails:
        raise BraidError(
            f"'{path}' fails as written, but not after it is read and written again",
            hint="the failure depends on how the file is written, not on its ops",
        )
