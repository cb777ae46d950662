"""The pass manager: what it calls, what it checks, and which errors it lets through."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.dialects.test import TestTermOp as BranchOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from braid.analysis.structure.verification import InvalidIRError
from braid.passes.infrastructure.instrumentation import Instrumentation, Timing
from braid.passes.infrastructure.manager import PassCrashError, run_pipeline
from braid.support.errors import BraidError


@dataclass(frozen=True)
class ActionPass(ModulePass):
    """Does what it is told."""

    name = "action"
    action: Callable[[ModuleOp], None]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.action(op)


def raising(error: Exception) -> ActionPass:
    def action(module: ModuleOp) -> None:
        raise error

    return ActionPass(action)


def add_empty_function(module: ModuleOp) -> None:
    module.body.block.add_op(FuncOp("f", ((), ()), Region(Block())))


@dataclass
class Log(Instrumentation):
    events: list[str] = field(default_factory=list)

    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.events.append("before")

    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.events.append("after")

    def after_failed_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.events.append("failed")

    def after_verify(self, module: ModuleOp) -> None:
        self.events.append("verified")


def run(*passes: ModulePass, verify: bool = True) -> list[str]:
    log = Log()
    with contextlib.suppress(BraidError, PassCrashError):
        run_pipeline(Context(), ModuleOp([]), passes, instrumentation=[log], verify=verify)
    return log.events


def nothing(module: ModuleOp) -> None: ...


def test_hooks_are_called_around_every_pass() -> None:
    assert run(ActionPass(nothing), ActionPass(nothing)) == ["before", "after", "verified"] * 2
    assert run(ActionPass(nothing), verify=False) == ["before", "after"]
    assert run(raising(KeyError("x")), ActionPass(nothing)) == ["before", "failed"]
    assert run(ActionPass(add_empty_function)) == ["before", "after", "failed"]


def test_a_braid_error_passes_through_unchanged() -> None:
    error = BraidError("too small", hint="buy more")
    with pytest.raises(BraidError) as caught:
        run_pipeline(Context(), ModuleOp([]), [raising(error)])
    assert caught.value is error


def test_a_failed_pass_of_xdsl_is_a_diagnostic() -> None:
    with pytest.raises(BraidError, match="pass 'action' failed: no such target"):
        run_pipeline(Context(), ModuleOp([]), [raising(PassFailedException("no such target"))])


def test_any_other_exception_is_a_crash_of_that_pass() -> None:
    bad = raising(KeyError("x"))
    with pytest.raises(PassCrashError, match="pass 'action' crashed: KeyError: 'x'") as caught:
        run_pipeline(Context(), ModuleOp([]), [ActionPass(nothing), bad])
    assert caught.value.failed is bad and caught.value.index == 1


def test_invalid_ir_is_a_crash_unless_nobody_looks() -> None:
    with pytest.raises(PassCrashError, match="left invalid IR") as caught:
        run_pipeline(Context(), ModuleOp([]), [ActionPass(add_empty_function)])
    assert isinstance(caught.value.__cause__, InvalidIRError)
    run_pipeline(Context(), ModuleOp([]), [ActionPass(add_empty_function)], verify=False)


def test_a_pass_that_breaks_dominance_is_caught() -> None:
    definition = AnyOp(result_types=[i32])
    user = AnyOp(operands=[definition.results[0]])
    outer = AnyOp(regions=[Region(Block([definition, user, BranchOp()]))])

    def swap(module: ModuleOp) -> None:
        definition.detach()
        outer.regions[0].block.insert_op_after(definition, user)

    module = ModuleOp([outer])
    with pytest.raises(PassCrashError, match="does not dominate"):
        run_pipeline(Context(), module, [ActionPass(swap)])


def test_a_pipeline_may_be_text() -> None:
    module = ModuleOp([])
    run_pipeline(Context(), module, "builtin.module(cse)")
    with pytest.raises(BraidError, match="unknown pass"):
        run_pipeline(Context(), module, "no-such-pass")


def test_timing_adds_up_what_a_name_took() -> None:
    timing = Timing()
    passes = [ActionPass(nothing), ActionPass(nothing)]
    run_pipeline(Context(), ModuleOp([]), passes, instrumentation=[timing])
    with timing.phase("other"):
        pass
    assert list(timing.phases) == ["action", "(verify)", "other"]
    assert 0 < sum(timing.phases.values()) <= timing.total()
