"""Pipelines as text: passes written and read again, and texts that nobody would write.

What is accepted and what is refused is in test/passes/pipeline.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import PassCrashError
from braid.passes.infrastructure.options import pass_text
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.infrastructure.reproducer import write_reproducer
from braid.support.errors import BraidError
from braid.tools.opt.files import stored_pipeline
from braid.universe import make_context


@dataclass(frozen=True)
class KnobsPass(ModulePass):
    """A pass with an option of every kind."""

    name = "knobs"
    count: int
    ratio: float = 0.5
    fast: bool = False
    file_name: str = ""
    sizes: tuple[int, ...] = ()
    mode: Literal["memory", "latency"] = "latency"
    limit: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


PASSES = {"knobs": lambda: KnobsPass}


def parse_one(text: str) -> ModulePass:
    (pass_,) = parse_pipeline(text, PASSES)
    return pass_


@pytest.mark.parametrize(
    "file_name", ["a b", 'a"b', "a\\b", "a\\", '\\"{,', "}", "größe", "two\nlines", "12", "true"]
)
def test_a_pass_as_text_parses_to_it(file_name: str) -> None:
    pass_ = KnobsPass(3, 0.25, True, file_name, (1, 2), "memory", 4)
    assert parse_one(pass_text(pass_)) == pass_


def test_a_pipeline_as_text_in_a_reproducer_is_the_same(tmp_path: Path) -> None:
    pass_ = KnobsPass(3, file_name='größe\n"\\')
    path = write_reproducer(
        tmp_path / "r.mlir", "builtin.module {}", PassCrashError(pass_, 0, ValueError())
    )
    parsed = parse_mlir(make_context(), path.read_text(), str(path))
    assert parse_one(stored_pipeline(parsed, str(path))) == pass_


@given(st.text('knobscount-1_= ,(){}[]"\\\n.', max_size=30))
@example("knobs{count=1}{")
@example('knobs{count=1 file-name="\\')
@example("any(knobs{count=1},")
def test_any_text_is_a_pipeline_or_one_located_error(text: str) -> None:
    try:
        passes = parse_pipeline(text, PASSES)
    except BraidError as error:
        location = error.location
        assert location is not None
        lines = text.split("\n")
        assert 1 <= location.line <= len(lines)
        assert 1 <= location.column <= len(lines[location.line - 1]) + 1
    else:
        assert all(isinstance(pass_, KnobsPass) for pass_ in passes)
