"""Which tiles products are made by, and how long that takes."""

from collections.abc import Iterator
from dataclasses import dataclass

from braid.lowering.gpu.kernels.contraction.plain_cores import WARP_COLUMNS, WARP_ROWS
from braid.lowering.gpu.kernels.contraction.problem import Number
from braid.lowering.gpu.kernels.contraction.tiles import Tiles
from braid.targets.machines.machine import Machine

_TENSOR = {
    (128, 256, 64, 64): 1.0,
    (256, 128, 64, 64): 1.0,
    (128, 128, 64, 64): 0.9,
    (64, 128, 32, 64): 0.75,
    (128, 64, 64, 32): 0.75,
    (64, 64, 32, 32): 0.6,
}
"""Rows and columns of a block and of a warp, and which part of the peak rate is assumed."""
_LEAST_REGISTERS = (64, 64, 32, 32)
_PLAIN = {(128, 128): 0.9, (64, 128): 0.8, (128, 64): 0.8, (64, 64): 0.65}
_DEPTHS = ((128, 3), (64, 5), (64, 4), (64, 3), (128, 2))
"""Bytes of a stage along depths, and stages; the preferred first."""
_KILO = 1024
_RESERVED = _KILO
"""Shared memory of a block that CUDA takes."""
_SHARED = {
    "sm_80": 164 * _KILO,
    "sm_86": 100 * _KILO,
    "sm_87": 164 * _KILO,
    "sm_89": 100 * _KILO,
    "sm_120": 100 * _KILO,
    "sm_121": 100 * _KILO,
}
"""Bytes of a multiprocessor ("CUDA C++ Programming Guide", technical specifications)."""
_SHARED_ELSE = 228 * _KILO


@dataclass(frozen=True)
class Size:
    """How large a product is, and what it moves to and from memory.

    Where operands are `scattered`, elements are gathered one by one, by way of registers.
    """

    batches: int
    rows: int
    columns: int
    depth: int
    number: Number
    bytes: int
    scattered: bool = False


def shared_limit(machine: Machine) -> int:
    """Bytes of shared memory that a block may have."""
    return _SHARED.get(machine.cpu.rstrip("af"), _SHARED_ELSE) - _RESERVED


def shared_bytes(tiles: Tiles, element: int) -> int:
    """At least what a block takes, as operands may lie."""
    lines = tiles.rows * (tiles.depth + (16 if element == 4 else 0))
    depth = tiles.depth // element
    other = max(tiles.columns * tiles.depth, depth * (tiles.columns * element + 16))
    return max(tiles.stages * (lines + other), tiles.rows * tiles.staged_pitch)


def seconds(size: Size, tiles: Tiles, machine: Machine) -> float:
    """Of whole waves of blocks at the assumed part of the machine's rate, or of its memory."""
    processors = machine.fact("multiprocessors", 108)
    blocks = size.batches * -(-size.rows // tiles.rows) * -(-size.columns // tiles.columns)
    waves = -(-blocks // processors)
    work = 2 * tiles.rows * tiles.columns * size.depth
    time = waves * processors * work / (_rate(size.number, machine) * _share(tiles, size.number))
    return max(time, size.bytes / machine.fact("memory_bandwidth", 2e12))


def _rate(number: Number, machine: Machine) -> float:
    if number is Number.F32:
        return machine.fact("flops", 19.5e12)
    if number in (Number.S8, Number.U8):
        return machine.fact("tensor_int8_ops", 624e12)
    return machine.fact("tensor_bf16_flops", 312e12)


def _share(tiles: Tiles, number: Number) -> float:
    if number is Number.F32:
        return _PLAIN[tiles.rows, tiles.columns]
    share = _TENSOR[tiles.rows, tiles.columns, tiles.warp_rows, tiles.warp_columns]
    preferred = _DEPTHS.index((tiles.depth, tiles.stages))
    return share * (1 - 0.02 * preferred)


def schedules(size: Size, machine: Machine, level: int) -> Iterator[Tiles]:
    """Those of a level, the fastest first: the best two at level 0, the others at level 1."""
    element = {Number.F32: 4, Number.S8: 1, Number.U8: 1}.get(size.number, 2)
    if size.number is Number.F32:
        shapes = [(*own, WARP_ROWS, WARP_COLUMNS) for own in _PLAIN]
        depths = ((64, 3),)
    else:
        shapes, depths = [_LEAST_REGISTERS] if size.scattered else list(_TENSOR), _DEPTHS
    limit = shared_limit(machine)
    found = [
        Tiles(rows, columns, depth, stages, warp_rows, warp_columns)
        for rows, columns, warp_rows, warp_columns in shapes
        for depth, stages in depths
    ]
    fitting = [tiles for tiles in found if shared_bytes(tiles, element) <= limit]
    ranked = sorted(fitting, key=lambda tiles: seconds(size, tiles, machine))
    if level == 0:
        yield from ranked[:2]
    elif level == 1:
        yield from ranked[2:]
