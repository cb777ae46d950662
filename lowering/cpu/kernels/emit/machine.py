"""The vector unit that kernels are emitted for, and what the cost models ask of it."""

from dataclasses import dataclass

from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class VectorUnit:
    """Width and registers of the vector instructions; rates are of one core, per second.

    `lanes` counts f32 elements of one register, `cache_bytes` are in the cache of a core,
    `last_cache_bytes` in its part of the one before memory; `cached_bytes` and `memory_bytes` are
    moved per second within and beyond that. The rates only rank schedules and layouts; the times
    that matter are measured.
    """

    lanes: int
    registers: int
    flops: float
    has_fma: bool
    cache_bytes: int
    last_cache_bytes: int
    cached_bytes: float
    memory_bytes: float

    @staticmethod
    def of(machine: Machine) -> "VectorUnit":
        """The unit that the facts of `machine` describe."""
        return VectorUnit(
            lanes=int(machine.fact("vector_bytes")) // 4,
            registers=int(machine.fact("vector_registers")),
            flops=machine.fact("flops"),
            has_fma=bool(machine.fact("fma")),
            cache_bytes=int(machine.fact("cache_bytes")),
            last_cache_bytes=int(machine.fact("last_cache_bytes")),
            cached_bytes=machine.fact("cached_bandwidth"),
            memory_bytes=machine.fact("memory_bandwidth"),
        )

    @property
    def fma_rate(self) -> float:
        """Vector multiply-adds per second."""
        return self.flops / (2 * self.lanes)
