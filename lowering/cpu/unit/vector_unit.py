"""The vector unit for which kernels are emitted, and the facts that cost models need."""

from dataclasses import dataclass, replace

from braid.support.errors import BraidError
from braid.targets.machines.machine import Machine

_WIDTHS = (16, 32, 64, 128, 256)
_SCALING = {4: "128", 8: "256", 16: "512"}
"""Lanes of f32 for which AVX-512 has an instruction that multiplies by powers of two."""
_FEWEST_REGISTERS = 8
"""The vector registers of 32-bit x86; fewer hold no tile with its operands."""


@dataclass(frozen=True)
class VectorUnit:
    """Width and registers of the vector instructions; rates are of one core, per second.

    `lanes` counts the elements of one register, each of `element_bytes`: It is 4, unless the unit
    is `for_elements` of another type. `cache_bytes` are in the cache of a core, `last_cache_bytes`
    in its part of the one before memory; `cached_bytes` and `memory_bytes` are moved per second
    within and beyond that. The rates only rank schedules and layouts; the times that matter are
    measured. `scaling` is LLVM's name of the instruction that multiplies f32 by powers of two,
    rounded once, None where there is none. `has_streams` says whether stores can go past the
    caches.
    """

    lanes: int
    registers: int
    flops: float
    has_fma: bool
    cache_bytes: int
    last_cache_bytes: int
    cached_bytes: float
    memory_bytes: float
    scaling: str | None = None
    has_streams: bool = False
    element_bytes: int = 4

    @staticmethod
    def of(machine: Machine) -> "VectorUnit":
        """Return the unit that the facts of `machine` describe.

        Raises BraidError for one that kernels cannot be emitted for.
        """
        width, registers = machine.fact("vector_bytes"), machine.fact("vector_registers")
        if width not in _WIDTHS:
            expected = ", ".join(map(str, _WIDTHS))
            raise BraidError(
                f"machine '{machine.name}' has 'vector_bytes' {width:g}, expected one of {expected}"
            )
        if registers < _FEWEST_REGISTERS:
            raise BraidError(
                f"machine '{machine.name}' has 'vector_registers' {registers:g}, expected at least "
                f"{_FEWEST_REGISTERS}"
            )
        return VectorUnit(
            lanes=int(width) // 4,
            registers=int(registers),
            flops=machine.fact("flops"),
            has_fma=bool(machine.fact("fma")),
            cache_bytes=int(machine.fact("cache_bytes")),
            last_cache_bytes=int(machine.fact("last_cache_bytes")),
            cached_bytes=machine.fact("cached_bandwidth"),
            memory_bytes=machine.fact("memory_bandwidth"),
            scaling=_scaling(machine, int(width) // 4),
            has_streams=machine.architecture == "x86_64",
        )

    def for_elements(self, bytes: int) -> "VectorUnit":
        """Return the unit for elements of 4 or 8 `bytes`: of wider ones a register has
        fewer lanes.
        """
        if bytes == self.element_bytes:
            return self
        share = self.element_bytes / bytes
        lanes, flops = int(self.lanes * share), self.flops * share
        return replace(self, lanes=lanes, flops=flops, scaling=None, element_bytes=bytes)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of vectors per cycle: two of those that are narrower than 64 bytes."""
        return 2 if self.has_fma and self.lanes * self.element_bytes < 64 else 1

    @property
    def fma_rate(self) -> float:
        """Vector multiply-adds per second."""
        return self.flops / (2 * self.lanes)


def _scaling(machine: Machine, lanes: int) -> str | None:
    features = set(machine.enabled_features)
    needed = {"avx512f"} if lanes == 16 else {"avx512f", "avx512vl"}
    if not machine.architecture.startswith("x86") or not needed <= features:
        return None
    return f"llvm.x86.avx512.mask.scalef.ps.{_SCALING[lanes]}" if lanes in _SCALING else None
