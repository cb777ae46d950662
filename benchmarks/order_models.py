"""Topological orders of real models: peak memory, and latency on a chip with splitting.

    python -m benchmarks.order_models memory  MODEL.onnx… [--time-limit 60] [--groups]
    python -m benchmarks.order_models latency MODEL.onnx… [--target npu-small] [--memory 699050]
                                              [--follow-readers]

Each takes `--json FILE`. The import order is the order in which the model stands in its file,
before any rewriting; `rewritten` is the best order behind `split-concats` and `reorder-sums`.
`--groups` orders groups of fused ops, as the default pipeline does, instead of single ops.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from xdsl.dialects import func

from benchmarks.arguments import output_file
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
    """The model after `pipeline`, its ops in the order of the file."""
    source = read_source(make_context(), path)
    run_pipeline(make_context(), source.module, pipeline)
    return source


def main_block(source: SourceModel) -> BlockGraph:
    """The block of `@main`."""
    functions = (op for op in source.module.ops if isinstance(op, func.FuncOp))
    return BlockGraph.of(next(f for f in functions if f.sym_name.data == "main").body.block)


def measure(name: str, source: SourceModel, options: SearchOrderPass) -> Record:
    """Searches an order of `@main`; figures of the search, of its subgraphs and of baselines."""
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


def measured(arguments: argparse.Namespace) -> Iterator[Record]:
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


def main() -> None:
    """Prints one record a line; `--json` writes them to a file as well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("objective", choices=["memory", "latency"])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="npu-small")
    parser.add_argument(
        "--memory",
        default="699050",
        help="limit of select-splits; by default a third of 2 MiB, so that tiles overlap",
    )
    parser.add_argument("--follow-readers", action="store_true", help="as of select-splits")
    parser.add_argument("--groups", action="store_true", help="memory: order fused groups")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--json", type=output_file)
    arguments = parser.parse_args()
    records: list[Record] = []
    for record in measured(arguments):
        print(json.dumps(record), flush=True)
        records.append(record)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
