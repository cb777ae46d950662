"""Passes that report their options, and that fail on request."""

from dataclasses import dataclass, fields
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from braid.support.errors import BraidError


@dataclass(frozen=True)
class TestOptionsPass(ModulePass):
    """Writes its options, of every kind there is, to the module."""

    name = "test-options"

    count: int
    ratio: float = 0.5
    fast: bool = False
    file_name: str = "none"
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ("a", "b")
    mode: Literal["memory", "latency"] = "latency"
    limit: int | str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add a line to the attribute `test.options`."""
        text = " ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
        before = op.attributes.get("test.options")
        lines = [before.data] if isinstance(before, StringAttr) else []
        op.attributes["test.options"] = StringAttr("; ".join([*lines, text]))


@dataclass(frozen=True)
class TestFailurePass(ModulePass):
    """Fails in one of the ways in which a pass can."""

    name = "test-failure"

    how: Literal["crash", "invalid-ir", "diagnostic", "post-init"] = "crash"
    note: str = ""

    def __post_init__(self) -> None:
        if self.how == "post-init":
            raise ValueError("these do not go together")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fail, after a change that a reproducer must not hold."""
        op.body.block.add_op(FuncOp.external("change", [], []))
        match self.how:
            case "invalid-ir":
                op.body.block.add_op(FuncOp("no_terminator", ((), ()), Region(Block())))
            case "diagnostic":
                raise BraidError("it does not fit", hint="use less")
            case _:
                raise KeyError("lost")


UNIVERSE = Universe(
    all_passes={
        "test-options": lambda: TestOptionsPass,
        "test-failure": lambda: TestFailurePass,
    }
)
