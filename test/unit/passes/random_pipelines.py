"""Random pipelines: passes with options, each of which may refuse what it finds."""

from collections.abc import Iterator
from random import Random

from xdsl.dialects.builtin import ModuleOp

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.passes.infrastructure.decision_checks import verifying_decisions
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.errors import BraidError
from braid.universe import make_context

GRAPH = (
    "apply-fusion",
    "apply-layouts",
    "apply-order",
    "apply-rematerialization",
    "apply-splits",
    "canonicalize",
    "cse",
    "expand-padding",
    "expand-transposed-convolutions",
    "fold-scale-into-weights",
    "fuse-conversions",
    "fuse-gathers",
    "fuse-shuffles",
    "group-upstream-ops",
    "hoist-parameter-expressions",
    "hoist-views",
    "inline",
    "merge-prepared-parameters",
    "prepare-backends",
    "reorder-sums{time-limit=0.1}",
    "search-order",
    "search-order{objective=latency target=npu-small}",
    "search-order{objective=latency target=npu-davinci}",
    "search-order{min-nodes=4 key-nodes-per-subgraph=2}",
    "select-fusion",
    "select-layouts",
    "select-layouts{target=npu-small}",
    "select-layouts{memory-limit=4KiB}",
    "select-layouts{change-signature=true}",
    "select-rematerialization{tensor-threshold=0}",
    "select-rematerialization{tensor-threshold=15 peak-threshold=100}",
    "select-rematerialization{fusion-rules=default peak=all}",
    "select-rematerialization{budget=500 time-limit=0.5}",
    "select-splits{memory=200B}",
    "select-storage",
    "split-concats{time-limit=0.1}",
)
"""Passes on graphs, which later ones still understand."""

LOWERING = ("outline-kernels", "plan-memory")

DECISIONS = {"select": "apply", "search": "apply"}


def random_pipeline(random: Random, length: int) -> Iterator[str]:
    """Return passes with options; apply passes often follow their decisions directly."""
    left = length
    while left > 0:
        chosen = random.choice(GRAPH)
        yield chosen
        left -= 1
        verb, _, subject = chosen.partition("{")[0].partition("-")
        follower = f"{DECISIONS.get(verb, verb)}-{subject}"
        if verb in DECISIONS and follower in GRAPH and random.random() < 0.7:
            yield follower
            left -= 1


def run_where_possible(module: ModuleOp, pipeline: Iterator[str]) -> tuple[ModuleOp, list[str]]:
    """Return the module after those passes that do not refuse it, and these passes.

    Decisions are verified. What is refused leaves the module as it was before.
    """
    ran: list[str] = []
    for pass_ in pipeline:
        attempt = module.clone()
        try:
            with collect_remarks(), handle_diagnostics(_ignore), verifying_decisions():
                run_pipeline(make_context(), attempt, pass_)
        except BraidError:
            continue
        module = attempt
        ran.append(pass_)
    return module, ran


def _ignore(diagnostic: Diagnostic) -> None:
    del diagnostic
