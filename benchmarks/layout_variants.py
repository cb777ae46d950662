"""Compiling one model with several ways to select layouts, and the reports of the selection."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xdsl.passes import ModulePass

import braid
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.driver.pipeline import graph_passes
from braid.driver.read_source import read_source
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.passes.profile.annotate_profile import AnnotateProfilePass
from braid.targets.machines.load import load_target
from braid.universe import make_context


@dataclass(frozen=True)
class Selection:
    """A way to select layouts: options of `select-layouts`, and a profile to weigh by."""

    name: str
    algorithm: str = "exact"
    ignore_profile: bool = False
    profile: Path | None = None

    def passes(self) -> tuple[ModulePass, ...]:
        """Return the default pipeline with this selection."""
        options = {"algorithm": self.algorithm, "ignore_profile": self.ignore_profile}
        passes: list[ModulePass] = [
            replace(pass_, **options) if isinstance(pass_, SelectLayoutsPass) else pass_
            for pass_ in graph_passes(load_target())
        ]
        if self.profile is not None:
            passes.insert(0, AnnotateProfilePass(str(self.profile)))
        return tuple(passes)


@dataclass(frozen=True)
class Decided:
    """The figures of a selection; `pass_seconds` is the time it took, in seconds."""

    cost: float
    lower_bound: float
    gap: float
    reorders: int
    pass_seconds: float


def decide(path: Path, selection: Selection) -> Decided:
    """Run the graph passes up to the selection, and time that one alone."""
    context = make_context()
    source = read_source(context, path)
    passes = selection.passes()
    index = next(i for i, pass_ in enumerate(passes) if isinstance(pass_, SelectLayoutsPass))
    run_pipeline(context, source.module, passes[:index], verify=False)
    start = time.perf_counter()
    with collect_remarks() as remarks:
        run_pipeline(context, source.module, passes[index : index + 1], verify=False)
    seconds = time.perf_counter() - start
    data = [remark.data for remark in remarks if remark.pass_name == SelectLayoutsPass.name]

    def total(key: str) -> float:
        return sum(float(entry[key] or 0) for entry in data)

    cost, bound = total("cost"), total("lower_bound")
    gap = (cost - bound) / cost if cost else 0.0
    return Decided(cost, bound, gap, int(total("reorders")), seconds)


def build(path: Path, selections: Sequence[Selection]) -> dict[str, braid.Model]:
    """Return the model once per selection."""
    return {s.name: braid.compile(path, passes=s.passes()) for s in selections}
