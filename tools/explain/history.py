"""Record what each pass did to the ops of a model: their text after every pass that changed it."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.names import names_of
from braid.dialects.braid.regions import GroupOp
from braid.passes.infrastructure.instrumentation import Instrumentation

AS_READ = "as read"


@dataclass(frozen=True)
class Change:
    """The text of an op, or of the ops with its name, after a pass; empty if it is gone.

    Between the texts of several ops is a form feed.

    `step` is the number of the pass, since some passes run several times; 0 is before the first.
    """

    after: str
    text: str
    step: int = 0


class History(Instrumentation):
    """Notes how passes change ops with names; with `names`, only of these.

    A group counts as one op, with all names of what is in it. Texts are printed where something
    has changed and for those names alone, since printing takes longer than most passes.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = frozenset(names)
        self._state: dict[str, tuple[Hashable, ...]] = {}
        self.changes: dict[str, list[Change]] = {}
        self._step = 0

    def begin(self, module: ModuleOp) -> None:
        """Note how ops are before the first pass."""
        self._note(AS_READ, module)

    @override
    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._step += 1
        self._note(pass_.name, module)

    def of(self, names: Sequence[str]) -> tuple[Change, ...]:
        """Return how the ops with these names looked after each pass that changed one of them."""
        steps: dict[int, list[tuple[str, Change]]] = {}
        for name in names:
            for change in self.changes.get(name, ()):
                steps.setdefault(change.step, []).append((name, change))
        now, found = dict.fromkeys(names, ""), list[Change]()
        for step in sorted(steps):
            now.update((name, change.text) for name, change in steps[step])
            lines = dict.fromkeys(line for text in now.values() for line in text.split("\f"))
            text = "\n".join(line for line in lines if line)
            if not found or found[-1].text != text:
                found.append(Change(steps[step][0][1].after, text, step))
        return tuple(found)

    def _note(self, after: str, module: ModuleOp) -> None:
        found: dict[str, list[Operation]] = {}
        states: dict[str, tuple[Hashable, ...]] = {}
        for op in _whole_ops(module):
            names = [n for n in names_of(op) if not self._names or n in self._names]
            own = (_state(op),) if names else ()
            for name in names:
                found.setdefault(name, []).append(op)
                states[name] = states.get(name, ()) + own
        for name in {**self._state, **found}:
            ops, state = found.get(name, []), states.get(name, ())
            if self._state.get(name) != state:
                self._state[name] = state
                texts = dict.fromkeys(map(str, ops))
                self.changes.setdefault(name, []).append(
                    Change(after, "\f".join(texts), self._step)
                )


def _whole_ops(module: ModuleOp) -> Iterator[Operation]:
    for op in module.walk():
        parent = op.parent_op()
        if not is_leaf(op) and not (parent is not None and _is_within_group(parent)):
            yield op


def _is_within_group(op: Operation) -> bool:
    return isinstance(op, GroupOp)


def _state(op: Operation) -> Hashable:
    """Return a key that is equal for ops that would be printed alike except for the names of
    values."""
    return (
        op.name,
        frozenset(op.attributes.items()),
        frozenset(op.properties.items()),
        tuple(value.type for value in op.operands),
        tuple(value.type for value in op.results),
        tuple(
            _state(inner)
            for region in (op.regions if isinstance(op, GroupOp) else ())
            for inner in region.walk()
        ),
    )
