"""Mutants of kernels that several families have: what a patch of their code leaves out."""

from collections.abc import Callable
from typing import Any

import pytest

from braid.lowering.gpu.contraction.code import Code

Mutate = Callable[[pytest.MonkeyPatch], None]


def without_barrier(number: int) -> Mutate:
    """Kernels without the n-th emitted barrier."""
    original = Code.barrier

    def mutate(patch: pytest.MonkeyPatch) -> None:
        seen: list[int] = []

        def barrier(self: Code) -> None:
            seen.append(0)
            if len(seen) - 1 != number:
                original(self)

        patch.setattr(Code, "barrier", barrier)

    return mutate


def without_intrinsic(name: str) -> Mutate:
    """Code without an intrinsic that has no results."""
    original = Code.intrinsic

    def dropped(self: Code, own: str, operands: Any, results: Any) -> Any:
        return [] if own == name else original(self, own, operands, results)

    return lambda patch: patch.setattr(Code, "intrinsic", dropped)


def without(part: str) -> Mutate:
    """Code without an instruction of assembly."""
    original = Code.assembly

    def dropped(
        self: Code, text: str, operands: Any = (), results: Any = (), before: Any = ()
    ) -> Any:
        if part in text:
            return list(before)
        return original(self, text, operands, results, before)

    return lambda patch: patch.setattr(Code, "assembly", dropped)


def replaced(old: str, new: str) -> Mutate:
    """Code with another text of an instruction of assembly."""
    original = Code.assembly

    def changed(
        self: Code, text: str, operands: Any = (), results: Any = (), before: Any = ()
    ) -> Any:
        return original(self, text.replace(old, new), operands, results, before)

    return lambda patch: patch.setattr(Code, "assembly", changed)


def with_constant(module: Any, name: str, value: Any) -> Mutate:
    """Code that is made with another constant of a module."""
    return lambda patch: patch.setattr(module, name, value)


def with_property(owner: type, name: str, change: Callable[[Any], Any]) -> Mutate:
    """Code that is made with another value of a property, cached or not."""
    found = owner.__dict__[name]
    get = found.func if hasattr(found, "func") else found.fget
    return lambda patch: patch.setattr(owner, name, property(lambda self: change(get(self))))
