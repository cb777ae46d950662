"""Compute how many blocks of a kernel a multiprocessor holds at once.

Figures are those of the "CUDA C++ Programming Guide", technical specifications per compute
capability.
"""

from dataclasses import dataclass

_WARP = 32
_REGISTERS = 65_536
_REGISTER_UNIT = 256
"""Registers of a warp are given in such units."""
_RESERVED = 1024
_SHARED_UNIT = 128
_KILO = 1024


@dataclass(frozen=True)
class Multiprocessor:
    """The limits of a multiprocessor: warps, blocks, bytes of shared memory, rate of tensor cores.

    `flops` is of bf16 in a cycle, dense; of bytes it is twice that.
    """

    warps: int
    blocks: int
    shared: int
    flops: int


_KNOWN = {
    80: Multiprocessor(64, 32, 164 * _KILO, 2048),
    86: Multiprocessor(48, 16, 100 * _KILO, 1024),
    87: Multiprocessor(48, 16, 164 * _KILO, 2048),
    89: Multiprocessor(48, 24, 100 * _KILO, 1024),
    90: Multiprocessor(64, 32, 228 * _KILO, 4096),
    100: Multiprocessor(64, 32, 228 * _KILO, 8192),
    103: Multiprocessor(64, 32, 228 * _KILO, 8192),
    110: Multiprocessor(48, 24, 228 * _KILO, 4096),
    120: Multiprocessor(48, 24, 100 * _KILO, 1024),
    121: Multiprocessor(48, 24, 100 * _KILO, 1024),
}


def multiprocessor(architecture: str) -> Multiprocessor:
    """Return the multiprocessor of an architecture such as `sm_90a`."""
    return _KNOWN[int(architecture.removeprefix("sm_").rstrip("af"))]


def blocks_at_once(architecture: str, threads: int, registers: int, shared: int) -> int:
    """Return the blocks of this many threads, with registers a thread and bytes of shared memory a
    block.
    """
    own = multiprocessor(architecture)
    warps = -(-threads // _WARP)
    of_warp = _rounded(registers * _WARP, _REGISTER_UNIT)
    by_registers = _REGISTERS // of_warp // 4 * 4 // warps if of_warp else own.blocks
    by_shared = own.shared // _rounded(shared + _RESERVED, _SHARED_UNIT)
    return max(0, min(own.blocks, own.warps // warps, by_registers, by_shared))


def occupancy(architecture: str, threads: int, registers: int, shared: int) -> float:
    """Return which part of the warps that a multiprocessor holds are those of such blocks."""
    blocks = blocks_at_once(architecture, threads, registers, shared)
    return blocks * -(-threads // _WARP) / multiprocessor(architecture).warps


def _rounded(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
