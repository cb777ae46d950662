"""Pipelines as text: what is accepted, with which passes and option values."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.errors import BraidError
from braid.frontends.mlir import parse_mlir
from braid.passes.options import pass_options, pass_text
from braid.passes.pipeline_parser import parse_pipeline
from braid.passes.reproducer import write_reproducer
from braid.tools.opt.reproducer import stored_pipeline
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
    ("text", "expected"),
    [
        ("knobs{count=1}", KnobsPass(1)),
        ("knobs{ count=-1  ratio=2 }", KnobsPass(-1, 2.0)),
        ("knobs{count=1 ratio=1e-3}", KnobsPass(1, 1e-3)),
        ("knobs{count=1 fast}", KnobsPass(1, fast=True)),
        ("knobs{count=1 fast=false}", KnobsPass(1)),
        ("knobs{count=1 file-name=../a/b.json}", KnobsPass(1, file_name="../a/b.json")),
        ('knobs{count=1 file-name="a b,c}\\"d"}', KnobsPass(1, file_name='a b,c}"d')),
        ("knobs{count=1 file_name=12}", KnobsPass(1, file_name="12")),
        ("knobs{count=1 sizes=1,2,3}", KnobsPass(1, sizes=(1, 2, 3))),
        (
            "knobs{count=1 sizes=4 mode=memory limit=7}",
            KnobsPass(1, 0.5, False, "", (4,), "memory", 7),
        ),
    ],
)
def test_options(text: str, expected: KnobsPass) -> None:
    assert parse_one(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("knobs", "requires argument"),
        ("knobs{count=x}", "rejects its options"),
        ("knobs{count=1 mode=fast}", "rejects its options"),
        ("knobs{count=1 cuont=2}", "has no option 'cuont'"),
        ("knobs{count=1 =2}", "malformed options"),
        ("knobs{count=1", "never closed"),
        ("knobs{count=1}x", "expected ','"),
        ("knobs{count=1)}", "unbalanced '\\)'"),
        ('knobs{count=1 file-name="a}', "never closed|malformed"),
        ("knobs{count=1 ratio=}", "malformed options"),
        ("knobs{count=1.5}", "rejects its options"),
        ("func.func(knobs{count=1}", "never closed"),
        ("(knobs{count=1})", "cannot nest"),
        ("nobs{count=1}", "unknown pass 'nobs'"),
    ],
)
def test_errors_name_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(BraidError, match=message) as caught:
        parse_pipeline(text, PASSES)
    assert caught.value.location is not None and caught.value.location.column >= 1


@pytest.mark.parametrize(
    "file_name", ["a b", 'a"b', "a\\b", "a\\", '\\"{,', "}", "größe", "two\nlines", "12", "true"]
)
def test_a_pass_as_text_parses_to_it(file_name: str) -> None:
    pass_ = KnobsPass(3, 0.25, True, file_name, (1, 2), "memory", 4)
    assert parse_one(pass_text(pass_)) == pass_


def test_a_pipeline_as_text_in_a_reproducer_is_the_same(tmp_path: Path) -> None:
    pass_ = KnobsPass(3, file_name='größe\n"\\')
    path = write_reproducer(tmp_path / "r.mlir", "builtin.module {}", pass_)
    parsed = parse_mlir(make_context(), path.read_text(), str(path))
    assert parse_one(stored_pipeline(parsed, str(path))) == pass_


def test_nesting_keeps_the_order() -> None:
    text = "builtin.module(knobs{count=1},func.func(knobs{count=2},knobs{count=3})),knobs{count=4}"
    counts = [p.count for p in parse_pipeline(text, PASSES) if isinstance(p, KnobsPass)]
    assert counts == [1, 2, 3, 4]


def test_options_as_a_user_sees_them() -> None:
    options = {o.name: (o.type_name, o.default) for o in pass_options(KnobsPass)}
    assert options == {
        "count": ("int", None),
        "ratio": ("float", "0.5"),
        "fast": ("bool", "false"),
        "file-name": ("str", ""),
        "sizes": ("int,...", ""),
        "mode": ("memory | latency", "latency"),
        "limit": ("int", "none"),
    }
