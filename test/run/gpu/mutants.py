"""Mutants of kernels that several families have: what a patch of their code leaves out."""

from collections.abc import Callable

import pytest

from braid.lowering.gpu.kernels.contraction.code import Code

Mutate = Callable[[pytest.MonkeyPatch], None]


def without_barrier(number: int) -> Mutate:
    """Kernels without the barrier that is emitted after so many others."""
    original = Code.barrier

    def mutate(patch: pytest.MonkeyPatch) -> None:
        seen: list[int] = []

        def barrier(self: Code) -> None:
            seen.append(0)
            if len(seen) - 1 != number:
                original(self)

        patch.setattr(Code, "barrier", barrier)

    return mutate
