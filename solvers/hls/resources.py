"""DSPs and memory blocks of a design."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from braid.solvers.hls.nests import MEMORY, Affine, Array, Design, Nest, Op
from braid.solvers.hls.schedule import Operators, Schedule, Sum, sums_of

BLOCK_BITS = 18 * 1024
"""The bits of a memory block (`BRAM_18K`)."""
LUT_RAM_BITS = 1024
"""FIFOs and banks up to this size are made of LUTs."""
FIFO_BLOCKS = 1
"""The most blocks of a FIFO: the tool makes those smaller that need not be so deep
(`config_dataflow`)."""


@dataclass(frozen=True)
class Resources:
    """`dsps`, and `blocks` of 18 Kib."""

    dsps: int
    blocks: int


def dsps_of(nest: Nest, plan: Schedule, operators: Operators) -> int:
    """Return the operators that one iteration needs, shared by as many as fit into the interval.

    If a sum must be carried to the next iteration in fewer cycles than adders with DSPs take, the
    adders on its longest chain use logic, which is faster. The other adders of such a sum can be
    shared less well.
    """
    counts = dict.fromkeys(operators.dsps, 0.0)
    hurried = {
        adder: one
        for one in sums_of(nest)
        if _hurried(one, plan, operators)
        for adder in one.adders
    }
    for number, op in enumerate(nest.body):
        if op.kind in counts:
            many = prod(loop.trips for loop in op.unrolled)
            if number in hurried:
                one = hurried[number]
                spare = max(one.terms - operators.links(one.terms), 0) / one.terms
                many *= spare * (operators.shared if plan.interval > 1 else 1.0)
            counts[op.kind] += many
    return sum(
        ceil(count / plan.interval - 1e-9) * operators.dsps[kind] for kind, count in counts.items()
    )


def address_multipliers(nest: Nest, arrays: Mapping[str, Array]) -> int:
    """Return the DSPs that multiply rows by their length and add the column: one per row and
    length.

    A length of two signed digits needs two shifts instead. Tools move code that depends only on
    outer loops out of the body, and conditions separate it from the body: a product whose addend is
    on the other side is made of LUTs. Reports showed that of matrices; where arrays of more dims
    are used in the order of the memory, their addresses are counted.
    """
    inner = nest.loops[-1].name
    split = any(op.guards for op in nest.body)
    found: set[tuple[int, Affine]] = set()
    for op in nest.body:
        if op.kind not in MEMORY or len(op.index) < 2:
            continue
        origin = {loop.name: 0 for loop in op.unrolled}
        index = [one.at(origin) for one in op.index]
        *_, row, column = index
        array = arrays[op.name]
        length = array.shape[-1] // array.banks[-1]
        if len(index) == 2:
            apart = split and inner not in row.variables and inner in column.variables
        else:
            order = [name for one in index for name in sorted(one.variables)]
            apart = order == [loop.name for loop in nest.loops]
        if row.terms and not apart and signed_digits(length) > 2:
            found.add((length, row))
    return len(found)


def signed_digits(number: int) -> int:
    """Return the fewest powers of two of either sign that add up to the number (Reitwiesner 1960).

    A product with it is that many shifts, and sums of them.
    """
    return (number ^ 3 * number).bit_count()


def _hurried(one: Sum, plan: Schedule, operators: Operators) -> bool:
    if one.distance is None:
        return False
    return plan.interval * one.distance < operators.unhurried(one.terms)


def _blocks(depth: int, bits: int) -> int:
    """Return the block RAMs of a memory of `depth` words: as few of 18 Kib as one of their shapes
    allows.
    """
    if depth * bits <= LUT_RAM_BITS:
        return 0
    shapes = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
    return min(ceil(depth / deep) * ceil(bits / wide) for deep, wide in shapes)


def _array_blocks(array: Array, copies: int) -> int:
    banks = prod(array.banks)
    depth = prod(ceil(size / count) for size, count in zip(array.shape, array.banks, strict=True))
    return banks * copies * _blocks(depth, array.bits)


def resources(
    design: Design, plans: tuple[tuple[Schedule, ...], ...], operators: Operators
) -> Resources:
    """Return the resources; arrays between processes are double-buffered, those outside the design
    cost nothing.
    """
    dsps = sum(
        dsps_of(nest, plan, operators) + address_multipliers(nest, design.arrays)
        for process, own in zip(design.processes, plans, strict=True)
        for nest, plan in zip(process.nests, own, strict=True)
    )
    blocks = sum(
        _array_blocks(array, _copies(design, name))
        for name, array in design.arrays.items()
        if not array.external
    ) + sum(
        prod(stream.shape) * min(_blocks(stream.depth, stream.bits), FIFO_BLOCKS)
        for stream in design.streams.values()
    )
    return Resources(dsps, blocks)


def _copies(design: Design, name: str) -> int:
    """Return the copies of an array: two if one process stores and another loads, none if it is
    never loaded.
    """
    users: set[str] = set()
    loaded = False
    for process in design.processes:
        for nest in process.nests:
            if any(op.name == name for op in nest.body):
                users.add(process.name)
            loaded = loaded or _loads(nest.body, name)
    return min(len(users), 2) if loaded else 0


def _loads(body: Sequence[Op], name: str) -> bool:
    """Return whether an element is loaded that the same iteration has not certainly stored
    before."""
    known: list[Op] = []
    for op in body:
        if op.name != name:
            continue
        if op.kind == "store":
            known.append(op)
        elif op.kind == "load" and not any(
            one.index == op.index and set(one.guards) <= set(op.guards) for one in known
        ):
            return True
    return False
