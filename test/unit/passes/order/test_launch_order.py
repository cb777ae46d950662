"""`search-order` on what launches functions, against every order, each carried out op by op."""

import random
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.order.block_graph import BlockGraph
from braid.passes.verification.order_claims import run_launches
from braid.targets.machines.load import load_target
from braid.universe import make_context
from test.unit.passes.order.test_brute_force import all_orders

BOARD = str(Path(__file__).parents[3] / "passes" / "order" / "Inputs" / "board.toml")
DEVICES = ("cpu:0", "gpu:0", "npu:0")
BOUNDS = "\n".join(
    f"%{k} = arith.constant {n} : index\n" for n, k in enumerate(("zero", "one", "two"))
)


def random_launches(seed: int, count: int) -> str:
    """Return a function of `count` launches, each of which reads earlier ones or the arguments."""
    rng = random.Random(seed)
    lines: list[str] = []
    functions: list[str] = []
    sizes = {"%x": rng.choice((10, 100_000))}
    for n in range(count):
        read = rng.sample(list(sizes), min(len(sizes), rng.choice((1, 1, 2))))
        made, seconds = rng.choice((10, 1000, 200_000)), rng.choice((1, 2, 4, 8)) * 1e-4
        inputs = ", ".join(f"tensor<{sizes[name]}xf32>" for name in read)
        tokens = ", ".join(f"%t{name[2:]}" for name in read if name != "%x")
        arguments = ", ".join(f"%{k}: tensor<{sizes[name]}xf32>" for k, name in enumerate(read))
        own = ", ".join(f"%{k}" for k in range(len(read)))
        result = f"tensor<{made}xf32>"
        launch = (
            f"%v{n}, %t{n} = braid.launch async [{tokens}] @f{n}({', '.join(read)}) "
            f": ({inputs}) -> {result}"
        )
        lines.append(launch)
        if count == 3 and n == 1:  # so does a loop, of which nothing is read
            again = launch.replace(f"%v{n}, %t{n} =", f"%u{n}, %s{n} =")
            lines.append(
                f"scf.for %i{n} = %zero to %two step %one {{\n{again}\n"
                f"%q{n} = braid.await [%s{n}] %u{n} : ({result}) -> {result}\n}}"
            )
        functions.append(
            f"func.func private @f{n}({arguments}) -> {result} "
            f'attributes {{braid.device = "{rng.choice(DEVICES)}"}} {{\n'
            f'%r = braid.opaque "f"({own}) {{cost = {seconds} : f64}} : ({inputs}) -> {result}\n'
            f"func.return %r : {result}\n}}"
        )
        if rng.random() < 0.2:  # the host waits for it, and computes
            lines.append(f"%w{n} = braid.await [%t{n}] %v{n} : ({result}) -> {result}")
            lines.append(
                f'%h{n} = braid.opaque "h"(%w{n}) {{cost = 3.0e-4 : f64}} : ({result}) -> {result}'
            )
        sizes[f"%v{n}"] = made
    lines.append(f"%last = braid.await [%t{count - 1}] %v{count - 1} : ({result}) -> {result}")
    body = "\n".join(lines)
    main = (
        f"func.func @main(%x: tensor<{sizes['%x']}xf32>) -> {result} "
        f"{{\n{BOUNDS}{body}\nfunc.return %last : {result}\n}}"
    )
    return "\n".join((main, *functions))


def main_of(module: ModuleOp) -> FuncOp:
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    return function


def seconds_of(module: ModuleOp, order: tuple[int, ...] | None = None) -> float:
    """Return the time of the launches of `module` in `order`, by default the given one."""
    copy = module.clone()
    block = main_of(copy).body.block
    ops, last = BlockGraph.of(block).ops, block.last_op
    assert last is not None
    for place in order or ():
        ops[place].detach()
        block.insert_op_before(ops[place], last)
    return run_launches(block, load_target(BOARD))


# Of five launches, which have up to thousands of orders.
MANY_ORDERS = {5, 11, 14, 23, 29}
SEEDS = [
    pytest.param(seed, marks=[pytest.mark.slow] if seed in MANY_ORDERS else [])
    for seed in range(30)
]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_order_is_faster_than_what_is_proven(seed: int) -> None:
    module = parse_mlir(make_context(), random_launches(seed, 3 + seed % 3), "launches").module
    graph = BlockGraph.of(main_of(module).body.block, launches_move=True)
    times = [seconds_of(module, order) for order in all_orders(graph)]
    before = seconds_of(module)
    assert before in times
    with collect_remarks() as remarks:
        options = f"objective=latency launches-only=true target={BOARD} time-limit=2"
        run_pipeline(make_context(), module, f"search-order{{{options}}},apply-order")
    found = [r.data for r in remarks if r.pass_name == "search-order" and "before" in r.data][-1]
    assert seconds_of(module) == pytest.approx(found["cost"], rel=1e-9)
    assert before == pytest.approx(found["before"], rel=1e-9)
    assert seconds_of(module) == pytest.approx(min(times), rel=1e-9)
    assert found["lower_bound"] <= min(times) * (1 + 1e-9)
