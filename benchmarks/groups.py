"""Groups of models that are computed by tiles or by generic loops, each beside its parts.

    python -m benchmarks.groups MODEL.onnx… [--runs 31] [--json out.json]

Each model is compiled up to its groups. Of equal ones among those that families of more than one
product take, or generic loops alone, one is compiled in a module of its own, and its ops in another
in which fusion makes no groups of tiles, nor of what only generic loops take. Both run in turns, on
one thread, timed by the clock of that thread. A row says how often the group is in the model, and a
summary which are slower than their parts by more than 10 %.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import braid
from benchmarks.arguments import count
from benchmarks.command import run_command
from benchmarks.models.compare import Candidate, interleave_for
from benchmarks.provenance import provenance
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.clusters import clear_placement
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.driver.pipeline import passes_for
from braid.driver.read_source import read_source
from braid.passes.fusion.select_fusion import SelectFusionPass
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.costs.cost_source import CostSource
from braid.targets.kernels.keys import canonical_kernel_text
from braid.targets.machines.resolve import device_of, target_of
from braid.tuning.probe_modules import module_of
from braid.tuning.synthetic_inputs import synthetic_inputs, synthetic_parameters
from braid.universe import make_context

_MOST_OF_PARTS = 1.1
_SECONDS = 1.0
"""The time limit of one group, together with its parts."""

Kind = Literal["tiled", "generic"]


@dataclass(frozen=True)
class Found:
    """A group of a model, and how often it is there."""

    kind: Kind
    group: FusedOp
    times: int


@dataclass(frozen=True)
class Measured:
    """Median seconds of a group and of its parts, and medians of the ratios of turns."""

    model: str
    kind: Kind
    ops: str
    times: int
    together: float
    parts: float
    by_parts: float


def groups_of(path: Path, context: Context) -> list[Found]:
    """Return the groups of several ops that are tiled or generic, one of those that are equal."""
    source = read_source(context, path)
    passes = list(passes_for(source.module))
    end = 1 + [each.name for each in passes].index("apply-fusion")
    with collect_remarks():
        run_pipeline(context, source.module, passes[:end])
    costs = CostSource(target_of(source.module))
    found: dict[str, Found] = {}
    for group in [op for op in source.module.walk() if isinstance(op, FusedOp)]:
        kind = _kind(group, costs)
        if kind is not None:
            text = canonical_kernel_text(group)
            known = found.get(text, Found(kind, group, 0))
            found[text] = replace(known, times=known.times + 1)
    return list(found.values())


def _kind(group: FusedOp, costs: CostSource) -> Kind | None:
    values = (*group.operands, *group.results)
    if len(_ops(group)) < 2 or any(DYNAMIC in shape_of(value) for value in values):
        return None
    matches = costs.of(group).kernels.matches
    takers = {type(match.candidate).__module__.rpartition(".")[2] for match in matches.of(group)}
    if takers <= {"generic"}:
        return "generic"
    return "tiled" if "tiled" in takers else None


def _ops(group: FusedOp) -> list[str]:
    names = (op.name.removeprefix("braid.") for op in group.body.block.ops)
    return [name for name in names if name not in ("constant", "yield")]


def measure(model: str, found: Found, runs: int) -> Measured:
    """Measure a group beside its parts."""
    module = module_of(found.group, device_of(found.group, target_of(found.group)))
    for op in module.walk():
        clear_placement(op)  # A launch runs on another thread.
    parts = module.clone()
    _inline(parts)
    passes = list(passes_for(module))
    names = [each.name for each in passes]
    behind = passes[names.index("apply-fusion") + 1 :]
    again: Sequence[ModulePass] = passes[
        names.index("select-fusion") : names.index("apply-fusion") + 1
    ]
    again = [replace(p, tiles=False) if isinstance(p, SelectFusionPass) else p for p in again]
    candidates = [_load("together", module, behind), _load("parts", parts, [*again, *behind])]
    seconds = interleave_for(candidates, runs, _SECONDS)
    together, apart = map(float, np.median(seconds, 1))
    ratio = float(np.median(seconds[0] / seconds[1]))
    name = " ".join(_ops(found.group))
    return Measured(model, found.kind, name, found.times, together, apart, ratio)


def _load(name: str, module: ModuleOp, passes: Sequence[ModulePass]) -> Candidate:
    start = time.perf_counter()
    parameters = synthetic_parameters(module)
    compiled = braid.compile(module, parameters=parameters, passes=passes, cache=False)
    run = partial(compiled.run, synthetic_inputs(compiled.inputs, {}))
    return Candidate(name, run, time.perf_counter() - start, {})


def _inline(module: ModuleOp) -> None:
    """Put the ops of the group in its place."""
    for group in [op for op in module.walk() if isinstance(op, FusedOp)]:
        values = dict(zip(group.body.block.args, group.operands, strict=True))
        block = group.parent
        assert block is not None
        for op in group.body.block.ops:
            if op is group.terminator:
                continue
            copy = op.clone(values)
            block.insert_op_before(copy, group)
            values.update(zip(op.results, copy.results, strict=True))
        for old, new in zip(group.results, group.terminator.arguments, strict=True):
            old.replace_all_uses_with(values[new])
        group.detach()
        group.erase()


def summary(found: Sequence[Measured]) -> str:
    """Return how many groups are slower than their parts, and which by more than 10 %."""
    slow = sorted(
        (each for each in found if each.by_parts > _MOST_OF_PARTS), key=lambda each: -each.by_parts
    )
    models = len({each.model for each in found})
    head = (
        f"{len(found)} groups of {models} models, slower than parts by more than 10 %: {len(slow)}"
    )
    return "\n".join([head, *map(_row, slow)])


def _row(each: Measured) -> str:
    return (
        f"{each.model:20} {each.times:3} × {each.kind:8} {1e3 * each.together:9.3f} ms, "
        f"{each.by_parts:5.2f} of parts: {each.ops}"
    )


def _all(paths: Sequence[Path], runs: int) -> Iterator[Measured]:
    for path in paths:
        found = groups_of(path, make_context())
        if not found:
            print(f"{path.stem:20} no group that is tiled or generic", flush=True)
        for group in found:
            yield measure(path.stem, group, runs)


def main(models: Sequence[Path], *, runs: Annotated[int, count] = 31) -> object:
    """Measure the groups of all models, print a row for each and a summary."""
    found: list[Measured] = []
    for each in _all(models, runs):
        found.append(each)
        print(_row(each), flush=True)
    print(summary(found))
    return {**provenance(()), "threads": 1, "results": found}


if __name__ == "__main__":
    run_command(main)
