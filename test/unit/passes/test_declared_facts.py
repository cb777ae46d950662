"""What ops declare survives every pass, or the pass refuses the module."""

import dataclasses
from random import Random

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from braid.dialects.braid.attribute_names import CANDIDATES, NAME, REORDER_COSTS, SECONDS
from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.registry import available_passes
from braid.passes.pass_table import PASSES
from braid.support.errors import BraidError
from braid.universe import make_context
from test.unit.passes.random_pipelines import LOWERING, random_pipeline, run_where_possible

TYPE = "tensor<4x8xf32>"
FACTS = (CANDIDATES, SECONDS)


def random_module(seed: int) -> str:
    """Return declared ops among others, in branches too; all of their results are needed."""
    draw = Random(seed)
    lines: list[str] = []
    values = ["%x"]
    for number in range(draw.randint(2, 5)):
        name, kind = f"%v{number}", draw.choice(["opaque", "opaque", "neg", "if"])
        read = draw.choice(values)
        if kind == "neg":
            lines.append(f"{name} = braid.neg {read} : ({TYPE}) -> {TYPE}")
        elif kind == "if":
            lines.append(f"{name} = scf.if %c -> ({TYPE}) {{")
            lines += [_opaque(draw, f"{name}i", read, number), f"scf.yield {name}i : {TYPE}"]
            lines += ["} else {", f"scf.yield {read} : {TYPE}", "}"]
        else:
            lines.append(_opaque(draw, name, read, number))
        values.append(name)
    made = values[1:]
    types = ", ".join([TYPE] * len(made))
    reorders = '[{source = "l0", target = "l1", cost = 1.0 : f64}]'
    return (
        f"module attributes {{{REORDER_COSTS} = {reorders}}} {{\n"
        f"func.func @main(%c: i1, %x: {TYPE}) -> ({types}) {{\n"
        + "\n".join(lines)
        + f"\nfunc.return {', '.join(made)} : {types}\n}}\n}}"
    )


def _opaque(draw: Random, name: str, read: str, number: int) -> str:
    facts = [f"cost = {draw.randint(1, 9)}.0 : f64"]
    if draw.random() < 0.5:
        facts.append('layouts = [{operands = ["ab"], results = ["ab"], cost = 2.0 : f64}]')
    if draw.random() < 0.5:
        facts.append(f"bytes = array<i64: {draw.randint(1, 9) * 128}>")
    if draw.random() < 0.7:
        facts.append(f'{NAME} = "n{number}"')
    if draw.random() < 0.5:
        facts.append(f"{CANDIDATES} = {{host = 1 : i64}}")
    if draw.random() < 0.5:
        facts.append(f"{SECONDS} = 3.0e-6 : f64")
    data = ", ".join(facts)
    return f'{name} = braid.opaque "o{number}"({read}) {{{data}}} : ({TYPE}) -> {TYPE}'


def facts_of(module: ModuleOp) -> dict[str, list[dict[str, Attribute]]]:
    """Return the declared facts of each kind of opaque op."""
    found: dict[str, list[dict[str, Attribute]]] = {}
    for op in module.walk():
        if isinstance(op, OpaqueOp):
            declared = {"cost": op.cost, "layouts": op.layouts, "bytes": op.bytes}
            declared |= {name: op.attributes.get(name) for name in FACTS}
            known = {name: value for name, value in declared.items() if value is not None}
            found.setdefault(op.kind.data, []).append(known)
    return found


def all_names(module: ModuleOp) -> set[str]:
    """Return the stable names of all ops; those of ops in a kernel are on its call."""
    return {name for op in module.walk() for name in names_of(op)}


def _has_options(name: str) -> bool:
    fields = dataclasses.fields(available_passes()[name]())
    missing = dataclasses.MISSING
    return any(f.default is missing and f.default_factory is missing for f in fields if f.init)


@pytest.mark.parametrize("name", [name for name in PASSES if not _has_options(name)])
def test_facts_survive_or_are_refused(name: str) -> None:
    for seed in range(12):
        context = make_context()
        module = parse_mlir(context, random_module(seed), "f.mlir").module
        before, reorders = facts_of(module), module.attributes[REORDER_COSTS]
        names = all_names(module)
        try:
            run_pipeline(context, module, name)
        except BraidError:
            continue
        require_same_facts(before, reorders, names, module, f"seed {seed}")


def require_same_facts(
    before: dict[str, list[dict[str, Attribute]]],
    reorders: Attribute,
    names: set[str],
    module: ModuleOp,
    what: str,
) -> None:
    after = facts_of(module)
    assert module.attributes[REORDER_COSTS] == reorders, what
    assert names <= all_names(module), what
    assert after.keys() == before.keys(), what
    for kind, declared in before.items():
        for copy in after[kind]:
            assert copy == declared[0], f"{what}, {kind}"


def check_pipeline(seed: int) -> int:
    """How many of two to four passes did not refuse the module; asserts that facts survive."""
    random = Random(seed)
    module = parse_mlir(make_context(), random_module(seed), "f.mlir").module
    before, reorders, names = facts_of(module), module.attributes[REORDER_COSTS], all_names(module)
    passes = [*random_pipeline(random, random.randint(2, 4)), *random.choice([(), LOWERING])]
    after, ran = run_where_possible(module, iter(passes))
    require_same_facts(before, reorders, names, after, f"seed {seed}: {','.join(ran)}")
    return len(ran)


def test_facts_survive_pipelines() -> None:
    assert sum(map(check_pipeline, range(60))) > 120


@pytest.mark.slow
@pytest.mark.parametrize("first", range(60, 4060, 1000))
def test_facts_survive_thousands_of_pipelines(first: int) -> None:
    assert sum(map(check_pipeline, range(first, first + 1000))) > 2000
