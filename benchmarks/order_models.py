"""Topological orders of real models: peak memory, and latency on a chip with splitting.

    python -m benchmarks.order_models memory  MODEL.onnx… [--time-limit 60] [--groups]
    python -m benchmarks.order_models latency MODEL.onnx… [--target npu-small] [--memory 699050]
                                              [--follow-readers]

Each takes `--json FILE`. The import order is the order in which the model stands in its file,
before any rewriting; `rewritten` is the best order behind `split-concats` and `reorder-sums`.
`--groups` orders groups of fused ops, as the default pipeline does, instead of single ops.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated

from xdsl.dialects import func

from benchmarks.command import run_command
from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.driver.read_source import SourceModel, read_source
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import latency_problem
from braid.passes.order.memory_problem import memory_problem
from braid.passes.order.search_order import SearchOrderPass
from braid.solvers.ordering import baselines
from braid.targets.machines.load import load_target
from braid.universe import make_context

HOIST = "hoist-parameter-expressions"
PREPARE = "canonicalize,cse,fold-scale-into-weights"
FUSE = "select-fusion,apply-fusion"
Record = dict[str, object]


def prepared(path: Path, pipeline: str) -> SourceModel:
    """Return the model after `pipeline`, its ops in the order of the file."""
    source = read_source(make_context(), path)
    run_pipeline(make_context(), source.module, pipeline)
    return source


def main_block(source: SourceModel) -> BlockGraph:
    """Return the block of `@main`."""
    functions = (op for op in source.module.ops if isinstance(op, func.FuncOp))
    return BlockGraph.of(next(f for f in functions if f.sym_name.data == "main").body.block)


def measure(name: str, source: SourceModel, options: SearchOrderPass) -> Record:
    """Search an order of `@main`; return figures of the search, of its subgraphs and of
    baselines."""
    block = main_block(source)
    backend = load_target(options.target).default_backend
    memory = options.objective == "memory"
    problem = (
        memory_problem(block, [0] * len(block.ops))
        if memory
        else latency_problem(block, backend, {})
    )
    values = {key: problem.evaluate(order) for key, order in baselines(problem).items()}
    begin = perf_counter()
    with collect_remarks() as remarks:
        options.apply(make_context(), source.module)
    seconds = perf_counter() - begin
    total = next(r for r in reversed(remarks) if "before" in r.data)
    before, cost = total.data["before"], total.data["cost"]
    assert isinstance(before, int | float) and isinstance(cost, int | float)
    return {
        "model": name,
        "ops": len(block.ops),
        "import": before,
        **values,
        "found": cost,
        "lower_bound": total.data["lower_bound"],
        "gap": total.data["gap"],
        "import / found": before / cost if cost else 1.0,
        "subgraphs": sum("subgraph" in r.data for r in remarks),
        "subgraphs within 5 %": sum(_is_close(r) for r in remarks),
        "search seconds": seconds,
    }


def _is_close(remark: Remark) -> bool:
    gap = remark.data.get("gap")
    return "subgraph" in remark.data and isinstance(gap, float) and gap <= 0.05


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    objective: Annotated[str, ["memory", "latency"]]
    models: Sequence[Path]
    _: KW_ONLY
    target: str = "npu-small"
    memory: Annotated[str, "limit of select-splits; by default tiles overlap in 2 MiB"] = "699050"
    follow_readers: Annotated[bool, "as of select-splits"] = False
    groups: Annotated[bool, "memory: order fused groups"] = False
    time_limit: float = 60.0


def measured(arguments: Settings) -> Iterator[Record]:
    """One record a model."""
    latency = arguments.objective == "latency"
    follow = " follow-readers" if arguments.follow_readers else ""
    through = "{through-concats}" if follow else ""
    select = f"select-splits{{memory={arguments.memory}{follow}}},apply-splits{through}"
    split = f",{select},{HOIST}" if latency else ""
    finish = f"{HOIST},{FUSE}" if arguments.groups else f"{HOIST}{split}"
    options = SearchOrderPass(
        objective=arguments.objective, target=arguments.target, time_limit=arguments.time_limit
    )
    for model in arguments.models:
        record = measure(model.stem, prepared(model, f"{PREPARE},{finish}"), options)
        if not latency:
            rewritten = prepared(model, f"{PREPARE},split-concats,reorder-sums,{finish}")
            record |= rewriting(record, measure(model.stem, rewritten, options))
        yield record


def rewriting(plain: Record, rewritten: Record) -> Record:
    """Compare the best order behind both rewritings with the import order before it."""
    before, cost = plain["import"], rewritten["found"]
    assert isinstance(before, int | float) and isinstance(cost, int | float)
    return {
        "rewritten ops": rewritten["ops"],
        "rewritten": cost,
        "rewritten lower_bound": rewritten["lower_bound"],
        "import / rewritten": before / cost if cost else 1.0,
    }


if __name__ == "__main__":
    run_command(measured)
