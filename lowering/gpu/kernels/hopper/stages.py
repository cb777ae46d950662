"""Rings of stages: memory that one thread fills and groups of threads read, in turn.

Each stage has two mbarriers, one for full and one for empty, in phases whose parity alternates: PTX
ISA, "mbarrier".
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from braid.lowering.gpu.contraction.code import Code, Value


@dataclass(frozen=True)
class Stages(ABC):
    """A ring in shared memory, whose tiles begin at `shared`."""

    shared: Value

    @property
    @abstractmethod
    def count(self) -> int:
        """Return the number of stages."""

    def barrier(self, code: Code, first: int, number: Value) -> Value:
        """Return an mbarrier of several, which begin at `first`."""
        return code.at(code.at(self.shared, code.mul(number, 8)), first)

    def following(self, code: Code, stage: Value, parity: Value) -> tuple[Value, Value]:
        """Return the next stage, and which phase of its mbarriers comes next."""
        more = code.add(stage, 1)
        wraps = code.equal(more, self.count)
        turned = code.xor(parity, 1)
        return code.select(wraps, code.number(0), more), code.select(wraps, turned, parity)
