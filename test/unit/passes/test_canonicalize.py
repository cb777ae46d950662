"""`canonicalize` and `cse` beyond their form: names, endless patterns, and random programs."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.interpreter import Interpreter
from xdsl.interpreters.arith import ArithFunctions
from xdsl.interpreters.func import FuncFunctions
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.names import names_of, set_names, union_names
from braid.frontends.mlir import parse_mlir
from braid.passes.canonicalize.canonicalize import CanonicalizePass
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.errors import BraidError
from braid.universe import make_context


def named(*names: str) -> ModuleOp:
    op = ModuleOp([])
    set_names(op, names)
    return op


def test_names_are_a_string_or_an_array_of_strings() -> None:
    assert named("a").attributes[NAME] == StringAttr("a")
    two = ArrayAttr([StringAttr("a"), StringAttr("b")])
    assert named("a", "b", "a").attributes[NAME] == two
    assert NAME not in named().attributes


def test_a_union_keeps_the_order_and_drops_duplicates() -> None:
    into = named("b", "a")
    union_names(into, named(), named("c", "a"), named("d"))
    assert names_of(into) == ("b", "a", "c", "d")
    untouched = named()
    union_names(untouched, named())
    assert NAME not in untouched.attributes


class Renumber(RewritePattern):
    """Replaces an op by an equal one: never done."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, RestlessOp())


class RestlessTrait(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (Renumber(),)


@irdl_op_definition
class RestlessOp(IRDLOperation):
    name = "test.restless"
    traits = traits_def(RestlessTrait())


def test_patterns_that_never_end_are_an_error() -> None:
    with pytest.raises(BraidError, match=r"does not end.*test\.restless"):
        CanonicalizePass().apply(Context(), ModuleOp([RestlessOp()]))


@dataclass(frozen=True)
class Program:
    text: str
    arguments: tuple[int, int]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Straight-line integer programs with many equal expressions and constants."""
    values = ["%a", "%b"]
    lines: list[str] = []
    for index in range(draw(st.integers(1, 15))):
        kind = draw(st.sampled_from(["constant", "addi", "muli", "subi", "xori"]))
        if kind == "constant":
            lines.append(f"%{index} = arith.constant {draw(st.integers(0, 2))} : i32")
        else:
            x, y = (draw(st.sampled_from(values[-4:])) for _ in range(2))
            lines.append(f"%{index} = arith.{kind} {x}, {y} : i32")
        values.append(f"%{index}")
    body = "\n  ".join([*lines, f"func.return {values[-1]} : i32"])
    arguments = (draw(st.integers(0, 9)), draw(st.integers(0, 9)))
    return Program(f"func.func @f(%a: i32, %b: i32) -> i32 {{\n  {body}\n}}", arguments)


def evaluate(module: ModuleOp, arguments: tuple[int, int]) -> tuple[object, ...]:
    interpreter = Interpreter(module)
    interpreter.register_implementations(FuncFunctions())
    interpreter.register_implementations(ArithFunctions())
    return interpreter.call_op("f", arguments)


@given(programs())
def test_simplifying_keeps_the_meaning_and_leaves_nothing_equal(program: Program) -> None:
    context = make_context()
    before = parse_mlir(context, program.text, "p.mlir").module
    after = before.clone()
    run_pipeline(context, after, "simplify,simplify")
    assert evaluate(after, program.arguments) == evaluate(before, program.arguments)
    assert sum(1 for _ in after.walk()) <= sum(1 for _ in before.walk())
    keys = [
        (op.name, tuple(op.operands), tuple(op.properties.items()))
        for op in after.walk()
        if op.name.startswith("arith.")
    ]
    assert len(keys) == len(set(keys))
