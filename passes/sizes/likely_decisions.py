"""Decisions for open sizes: made on a copy of the module at likely ones, and carried over.

A decision is attributes. The copy has an op for each op of the module, in the same order, so that
attributes can be transferred. Ops of the copy hold their types in the module (`braid.open_types`):
a kernel family that supports a group at the likely sizes is asked whether it supports it at all
sizes.
"""

from abc import ABC
from collections.abc import Callable, Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from braid.analysis.sizes.open_forms import note_open_types
from braid.dialects.braid.sizes import is_open
from braid.passes.sizes.bind_sizes import bind_likely_sizes


class DecisionPass(ModulePass, ABC):
    """A pass that writes attributes alone; where sizes are open it sees likely ones."""


def decide(module: ModuleOp, pass_: ModulePass, apply: Callable[[ModuleOp], None]) -> None:
    """Run `apply`, which runs `pass_` on a module: at likely sizes if the pass decides.

    Raises BraidError for a module that is impossible at its likely sizes.
    """
    if not isinstance(pass_, DecisionPass) or not is_open(module):
        apply(module)
        return
    copy = module.clone()
    ops, copies = list(module.walk()), list(copy.walk())
    for op in copies:
        note_open_types(op)
    bind_likely_sizes(copy)
    copies = list(copy.walk())
    before = [_named(op) for op in copies]
    apply(copy)
    decided = list(copy.walk())
    assert len(ops) == len(copies) == len(decided), f"'{pass_.name}' changed ops, and is to decide"
    for op, own, old in zip(ops, decided, before, strict=True):
        for held, name, value in _changed(old, _named(own)):
            target = op.attributes if held == "attributes" else op.properties
            if value is None:
                target.pop(name, None)
            else:
                target[name] = value


_Named = Mapping[tuple[str, str], Attribute]


def _named(op: Operation) -> _Named:
    """Return attributes and properties of an op by where they are held, and their names."""
    attributes = {("attributes", name): value for name, value in op.attributes.items()}
    return attributes | {("properties", name): value for name, value in op.properties.items()}


def _changed(old: _Named, new: _Named) -> Iterator[tuple[str, str, Attribute | None]]:
    """Yield new and changed attributes, and None for removed ones."""
    for held, name in {**old, **new}:
        value = new.get((held, name))
        if value != old.get((held, name)):
            yield held, name, value
