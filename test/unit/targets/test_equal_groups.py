"""What is asked once of groups that are equal but for the names of their ops."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.targets.kernels.equal_groups import EqualGroups
from braid.universe import make_context

FIRST = ("%x, %w", 'braid.sub %a, %b {braid.name = "first"}')


def groups(*rows: tuple[str, str]) -> tuple[ModuleOp, list[FusedOp]]:
    """Return a module with a group for each row: its operands, and its op."""
    t = "tensor<4x4xf32>"
    lines = [
        f"%g{n} = braid.fused({operands}) : ({t}, {t}) -> {t} {{\n^bb0(%a: {t}, %b: {t}):\n"
        f"%0 = {op} : ({t}, {t}) -> {t}\nbraid.yield %0 : {t}\n}}"
        for n, (operands, op) in enumerate(rows)
    ]
    text = "\n".join(
        (
            f"func.func @main(%x: {t}, %y: {t}) -> {t} {{",
            f'%w = braid.parameter {{key = "w"}} : {t}',
            f'%v = braid.parameter {{key = "v"}} : {t}',
            *lines,
            f"func.return %g0 : {t}\n}}",
        )
    )
    module = parse_mlir(make_context(), text, "groups.mlir").module
    return module, [op for op in module.walk() if isinstance(op, FusedOp)]


def asked(*rows: tuple[str, str]) -> list[int]:
    """Of which groups a fact was asked."""
    module, found = groups(*rows)
    seen: list[int] = []
    facts = EqualGroups(lambda group: seen.append(found.index(group)) or str(group.body))
    for group in found:
        assert facts.of(group) == facts.of(group)
    assert isinstance(module, ModuleOp)
    return seen


@pytest.mark.parametrize(
    "other",
    [
        ("%x, %w", 'braid.sub %a, %b {braid.name = "other"}'),
        ("%y, %v", "braid.sub %a, %b"),
    ],
)
def test_groups_that_differ_in_names_and_values_share_a_fact(other: tuple[str, str]) -> None:
    assert asked(FIRST, other) == [0]


@pytest.mark.parametrize(
    "other",
    [
        ("%x, %w", "braid.sub %b, %a"),
        ("%x, %w", "braid.sub %a, %a"),
        ("%x, %w", "braid.add %a, %b"),
        ("%x, %w", "braid.sub %a, %b {braid.seconds = 1.0 : f64}"),
        ("%x, %y", "braid.sub %a, %b"),
        ("%w, %x", "braid.sub %a, %b"),
        ("%g0, %w", "braid.sub %a, %b"),
        ("%x, %x", "braid.sub %a, %b"),
    ],
)
def test_groups_that_differ_in_anything_else_do_not(other: tuple[str, str]) -> None:
    assert asked(FIRST, other) == [0, 1]


def test_a_group_that_changed_is_asked_again() -> None:
    module, (group,) = groups(FIRST)
    calls: list[FusedOp] = []
    facts = EqualGroups(lambda asked: calls.append(asked) or len(calls))
    assert (facts.of(group), facts.of(group)) == (1, 1)
    op = group.body.block.first_op
    assert op is not None
    op.operands = (op.operands[1], op.operands[0])
    assert facts.of(group) == 2
    assert isinstance(module, ModuleOp)
