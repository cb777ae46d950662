"""List the tiles by which products are made, and predict how long that takes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

from braid.lowering.gpu.contraction.plain_cores import WARP_ROWS
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.tiles import CHUNK, LEAST_COPY, PADDING, Tiles
from braid.targets.machines.machine import Machine

_TENSOR = {
    (128, 256, 64, 64): 1.0,
    (256, 128, 64, 64): 1.0,
    (128, 128, 64, 64): 0.9,
    (64, 128, 32, 64): 0.75,
    (128, 64, 64, 32): 0.75,
    (64, 64, 32, 32): 0.6,
    (32, 64, 16, 32): 0.3,
    (64, 32, 32, 16): 0.3,
    (32, 32, 16, 16): 0.15,
}
"""Rows and columns of a block and of a warp, and which part of the peak rate is assumed."""
_PLAIN = {
    (128, 128, WARP_ROWS, 128): 0.7,
    (128, 256, WARP_ROWS, 128): 0.71,
    (128, 128, WARP_ROWS, 64): 0.63,
    (64, 128, WARP_ROWS, 64): 0.66,
    (128, 64, WARP_ROWS, 64): 0.66,
    (64, 64, WARP_ROWS, 64): 0.74,
}
"""The same for f32, measured on an H200: the first at 4096³, the others fitted to 61 times of
matmuls with 128 to 512 rows, which they reproduce within 2 % (root mean square)."""
_ALONE = {128: 0.51, 64: 0.66}
"""Columns of an f32 warp, and the fraction of the rate of a multiprocessor's quarter that it
reaches alone: from the same times."""
_SCATTERED = 0.33e-9
"""Seconds in which a multiprocessor copies 4 bytes alone of columns that are apart: from what
convolutions of f32 took more than products on an H200."""
_DEPTHS = ((128, 3), (64, 5), (64, 4), (64, 3), (128, 2), (128, 6), (128, 8))
"""Bytes of a stage along K, and stages; the preferred first."""
_ELEMENTS = {ElementKind.F32: 4, ElementKind.TF32: 4, ElementKind.S8: 1, ElementKind.U8: 1}
"""Bytes; it is 2 for others."""
_SPLITS = (2, 4, 8, 16, 32)
"""Blocks that have parts of K of one tile (split-K)."""
_LEAST_STAGES = 4
"""The least stages of a part: with fewer, hardly any copy runs while products are added up."""
_LATENCY = 0.9e-6
"""Seconds from the start of a copy to its end, measured on an H200 with cold caches: all stages but
one are under way at once."""
_SECOND_ENTRY = 2e-6
"""Seconds, assumed: an entry in a graph begins when the one before has ended."""
_MOST_REGISTERS = 240
"""The most registers of a thread, of 255 that it may have: how many are needed is predicted."""
_LANES = 128
"""Multiply-adds of f32 that a multiprocessor begins at once."""
_QUARTERS = 4
"""The quarters of a multiprocessor, each of which issues one warp instruction at once."""
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
_MOST_SHARED = 228 * _KILO


@dataclass(frozen=True)
class Size:
    """The size of a product, and its memory traffic.

    `copied` has the bytes of A and of B that are copied together; if they are fewer than
    LEAST_COPY, elements are gathered one by one through registers.
    """

    batches: int
    rows: int
    columns: int
    depth: int
    kind: ElementKind
    bytes: int
    copied: tuple[int, int] = (CHUNK, CHUNK)

    @property
    def element(self) -> int:
        """Bytes of an element of the operands."""
        return _ELEMENTS.get(self.kind, 2)


def shared_memory(machine: Machine) -> int:
    """Return the bytes of shared memory of a multiprocessor."""
    return _SHARED.get(machine.cpu.rstrip("af"), _MOST_SHARED)


def shared_limit(machine: Machine) -> int:
    """Return the bytes of shared memory that a block may have."""
    return shared_memory(machine) - _RESERVED


def shared_bytes(tiles: Tiles, element: int) -> int:
    """Return the least bytes of shared memory of a block, by the strides of operands."""
    lines = tiles.rows * (tiles.depth + (PADDING if element == 4 else 0))
    depth = tiles.depth // element
    other = max(tiles.columns * tiles.depth, depth * (tiles.columns * element + PADDING))
    return max(tiles.stages * (lines + other), tiles.rows * tiles.staged_pitch)


def registers(size: Size, tiles: Tiles) -> float:
    """Return the approximate registers of a thread of tensor cores: sums, fragments of two steps,
    addresses, gathers.

    The registers of gathered elements and their positions, and of the positions of the smallest
    copies, were read from machine code of ptxas 13.5; wider copies are too few to matter.
    """
    sums = tiles.warp_rows * tiles.warp_columns // 32
    fragments = 2 * 4 * (tiles.warp_rows + tiles.warp_columns) // 16
    pieces = 0.0
    for lines, copied in zip((tiles.rows, tiles.columns), size.copied, strict=True):
        if copied <= LEAST_COPY:
            each = 1.25 if copied < LEAST_COPY else 1.0
            pieces += each * lines * (tiles.depth // max(copied, size.element)) / tiles.threads
    return 40 + sums + fragments + pieces


def copied_together(line: int) -> int:
    """Return the bytes of a copy where lines of this many bytes follow each other."""
    return gcd(line, CHUNK)


def seconds(size: Size, tiles: Tiles, machine: Machine) -> float:
    """Return the seconds of whole waves of blocks at the assumed part of the machine's rate, or of
    its memory.
    """
    processors = machine.fact("multiprocessors", 108)
    blocks = size.batches * -(-size.rows // tiles.rows) * -(-size.columns // tiles.columns)
    blocks *= tiles.splits
    beside = _side_by_side(size, tiles)
    rounds = -(-blocks // (processors * beside))
    stage = tiles.depth // size.element
    depth = min(size.depth, -(-size.depth // (stage * tiles.splits)) * stage)
    turns = -(-depth // stage)
    rate = peak_rate(size.kind, machine) / processors
    time = 2 * tiles.rows * tiles.columns * depth * beside / (rate * share_of(tiles, size))
    if size.kind is ElementKind.F32:
        alone = 2 * tiles.warp_rows * tiles.warp_columns * depth * _QUARTERS / rate
        time = max(time, alone / _ALONE[tiles.warp_columns])
        if size.copied[1] <= LEAST_COPY:
            time += turns * stage * tiles.columns * beside * _SCATTERED
    bandwidth = machine.fact("memory_bandwidth", 2e12)
    time = max(rounds * time, size.bytes / bandwidth, turns * _LATENCY / max(tiles.stages - 1, 1))
    if tiles.splits > 1:
        # Parts of sums are written, and read by another entry.
        parts = 4 * size.batches * size.rows * size.columns * tiles.splits
        time += _SECOND_ENTRY + 2 * parts / bandwidth
    return time


def mma_rate(kind: ElementKind, machine: Machine) -> float:
    """Return the operations a second by `mma.sync`, which is not every GPU's fastest way."""
    fact, default = "bf16_flops", 312e12
    if kind is ElementKind.TF32:
        fact, default = "tf32_flops", 156e12
    if kind in (ElementKind.S8, ElementKind.U8):
        fact, default = "int8_ops", 624e12
    return machine.fact(f"mma_{fact}", machine.fact(f"tensor_{fact}", default))


def peak_rate(kind: ElementKind, machine: Machine) -> float:
    """Return the operations a second of all multiprocessors, for f32 without tensor cores."""
    if kind is ElementKind.F32:
        return machine.fact("flops", 19.5e12)
    return mma_rate(kind, machine)


def share_of(tiles: Tiles, size: Size) -> float:
    """Return the fraction of that rate that is assumed; for tiles outside of the space, that of its
    slowest tile."""
    shape = (tiles.rows, tiles.columns, tiles.warp_rows, tiles.warp_columns)
    if size.kind is ElementKind.F32:
        return _PLAIN.get(shape, min(_PLAIN.values()))
    share = _TENSOR.get(shape, min(_TENSOR.values()))
    depth = (tiles.depth, tiles.stages)
    preferred = _DEPTHS.index(depth) if depth in _DEPTHS else len(_DEPTHS)
    return share * (1 - 0.02 * preferred)


def schedules(size: Size, machine: Machine, level: int) -> Iterator[Tiles]:
    """Return the schedules of a level, the fastest first: the best two at level 0, the others at
    level 1.
    """
    if size.kind is ElementKind.F32:
        shapes, depths = list(_PLAIN), ((64, 4),)
    else:
        shapes, depths = list(_TENSOR), _DEPTHS
    limit = shared_limit(machine)
    found = [
        Tiles(rows, columns, depth, stages, warp_rows, warp_columns)
        for rows, columns, warp_rows, warp_columns in shapes
        for depth, stages in depths
    ]
    fitting = [tiles for tiles in found if shared_bytes(tiles, size.element) <= limit]
    if min(size.copied) <= LEAST_COPY:
        fitting = [tiles for tiles in fitting if registers(size, tiles) <= _MOST_REGISTERS]
    fitting += [replace(t, splits=s) for t in fitting for s in _splits(size, t, machine)]
    ranked = sorted(fitting, key=lambda tiles: seconds(size, tiles, machine))
    if level == 0:
        yield from ranked[:2]
    elif level == 1:
        yield from ranked[2:]


def _side_by_side(size: Size, tiles: Tiles) -> int:
    """Return the blocks that keep all lanes of a multiprocessor busy; it then computes them in
    turns.
    """
    return max(1, _LANES // tiles.threads) if size.kind is ElementKind.F32 else 1


def _splits(size: Size, tiles: Tiles, machine: Machine) -> Iterator[int]:
    """Return the numbers of parts for split-K: each part has some of K, and a multiprocessor."""
    stages = -(-size.depth // (tiles.depth // size.element))
    blocks = size.batches * -(-size.rows // tiles.rows) * -(-size.columns // tiles.columns)
    for splits in _SPLITS:
        each = -(-stages // splits)
        side = _side_by_side(size, tiles)
        fills = blocks * splits <= side * machine.fact("multiprocessors", 108)
        if fills and each >= _LEAST_STAGES and each * (splits - 1) < stages:
            yield splits
