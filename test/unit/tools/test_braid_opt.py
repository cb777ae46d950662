"""`braid-opt` with passes that only a test has: remarks, warnings, crashes, bad packages."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.diagnostics.warnings import emit_warning
from braid.passes.infrastructure import registry
from braid.support.errors import BraidError
from braid.tools.braid_opt import main

MODULE = "builtin.module {\n  func.func private @f() -> ()\n}\n"


@dataclass(frozen=True)
class TalkPass(ModulePass):
    """Says something about every function."""

    name = "talk"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            emit_remark(function, "talk", "chose 2 of 3", cost=2.0, lower_bound=1.5, gap=0.25)
            emit_warning(function, "this is slow", hint="make it fast")


@dataclass(frozen=True)
class SpoilPass(ModulePass):
    """Leaves an invalid function behind."""

    name = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.body.block.add_op(FuncOp("g", ((), ()), Region(Block())))


@dataclass(frozen=True)
class RefusePass(ModulePass):
    """Finds fault with the input."""

    name = "refuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise BraidError("it does not fit", hint="use less")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    passes = {p.name: (lambda p=p: p) for p in (TalkPass, SpoilPass, RefusePass)}
    available = registry.available_passes() | passes
    for module in ("registry", "pipeline_parser"):
        monkeypatch.setattr(
            f"braid.passes.infrastructure.{module}.available_passes", lambda: available
        )
    monkeypatch.setattr("braid.tools.opt.arguments.available_passes", lambda: available)
    path = tmp_path / "in.mlir"
    path.write_text(MODULE)
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(source: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_main(*arguments: object) -> tuple[int, str, str]:
        status = main([str(source), *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_main


def test_remarks_are_printed_only_when_asked_for(run: Run, source: Path) -> None:
    status, out, err = run("--talk", "--remarks")
    assert status == 0 and out == MODULE
    assert (
        f"{source}:2:3: remark: [talk] chose 2 of 3\n  func.func private @f() -> ()\n  ^\n" in err
    )
    assert ": remark:" not in run("--talk")[2]


def test_warnings_are_always_printed_with_their_hint(run: Run, source: Path) -> None:
    status, _, err = run("--talk")
    assert status == 0
    assert f"{source}:2:3: warning: this is slow\n" in err and "hint: make it fast\n" in err


def test_remarks_as_json(run: Run, source: Path, tmp_path: Path) -> None:
    assert run("-p", "talk", "--remarks-json", tmp_path / "remarks.json")[0] == 0
    (remark,) = json.loads((tmp_path / "remarks.json").read_text())
    assert remark == {
        "pass": "talk",
        "op": "func.func",
        "message": "chose 2 of 3",
        "file": str(source),
        "line": 2,
        "column": 3,
        "data": {"cost": 2.0, "lower_bound": 1.5, "gap": 0.25},
    }


def test_remarks_and_warnings_can_be_expected(run: Run, source: Path) -> None:
    source.write_text(
        "// expected-remark @+2 {{[talk] chose 2}}\n"
        "// expected-warning @+1 {{slow}}\n"
        "func.func private @f()\n"
    )
    assert run("--talk", "--remarks", "--verify-diagnostics")[0] == 0
    status, _, err = run("--talk", "--verify-diagnostics")
    assert status == 1 and 'expected remark "[talk] chose 2" was not produced' in err


def test_an_error_of_a_pass_is_one_diagnostic(run: Run) -> None:
    assert run("--refuse") == (1, "", "braid-opt: error: it does not fit\nhint: use less\n")


def test_an_error_without_location_can_be_expected(run: Run, source: Path) -> None:
    source.write_text(MODULE + "// expected-error @unknown {{it does not fit}}\n")
    assert run("--refuse", "--verify-diagnostics")[0] == 0


def test_invalid_ir_goes_unnoticed_without_verification(run: Run) -> None:
    for flag in ("--no-verify", "--no-verify-each", "--verify-each=false"):
        status, out, _ = run("--spoil", flag)
        assert status == 0 and "@g" in out


def test_the_failing_pass_can_be_printed(run: Run, tmp_path: Path) -> None:
    flags = ("--crash-reproducer", tmp_path / "crash.mlir", "--print-ir-after-failure")
    assert "IR Dump After SpoilPass (spoil) Failed" in run("--spoil", *flags)[2]


def test_a_broken_package_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise BraidError("a package that extends xDSL cannot be loaded: no module 'x'")

    monkeypatch.setattr("braid.tools.opt.driver.make_context", lambda **_: broken())
    status, _, err = run()
    assert status == 1 and err.startswith("braid-opt: error: a package")


def test_an_internal_error_is_a_message_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("braid.tools.opt.driver.make_context", lambda **_: 1 // 0)
    status, _, err = run()
    assert status == 1 and "internal error: ZeroDivisionError" in err and "Traceback" not in err
    assert "Traceback" in run("--debug")[2]
