"""Printing the IR around passes, in the form that mlir-opt prints it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.dialects.printing import module_text
from braid.passes.infrastructure.instrumentation import Instrumentation
from braid.support.errors import BraidError

Condition = Callable[[ModulePass], bool]


def never(pass_: ModulePass) -> bool:
    """Return the condition that holds for no pass."""
    return False


@dataclass
class IRPrinting(Instrumentation):
    """Prints the module before and after the passes for which the conditions hold.

    With `tree`, each dump goes to a file `<tree>/builtin_module_<symbol>/<n>_<pass>.mlir`, n
    counting the dumps, instead of standard error. Raises `BraidError` where that cannot be
    written.
    """

    before: Condition = never
    after: Condition = never
    on_failure: bool = False
    only_changes: bool = False
    tree: Path | None = None
    text: Callable[[ModuleOp], str] = module_text
    """The function that prints a module, without a newline at its end."""
    _previous: str = field(default="", init=False)
    _count: int = field(default=0, init=False)

    @override
    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        if self.only_changes:
            self._previous = self.text(module)
        if self.before(pass_):
            self._dump(f"Before {_title(pass_)}", pass_, module)

    @override
    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        if not self.after(pass_):
            return
        if self.only_changes and self.text(module) == self._previous:
            return
        self._dump(f"After {_title(pass_)}", pass_, module)

    @override
    def after_failed_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        if self.on_failure:
            self._dump(f"After {_title(pass_)} Failed", pass_, module)

    def _dump(self, title: str, pass_: ModulePass, module: ModuleOp) -> None:
        text = f"// -----// IR Dump {title} //----- //\n{self.text(module)}\n"
        if self.tree is None:
            print(text, file=sys.stderr)
            return
        symbol = "no-symbol-name" if module.sym_name is None else module.sym_name.data
        path = self.tree / f"builtin_module_{symbol}" / f"{self._count}_{pass_.name}.mlir"
        self._count += 1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BraidError(f"cannot write IR to '{path}': {error.strerror}") from error


def _title(pass_: ModulePass) -> str:
    return f"{type(pass_).__name__} ({pass_.name})"
