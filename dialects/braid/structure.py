"""What a structured op computes: stages of iteration spaces with scalar bodies.

Cost, splittable dims, layout propagation and `linalg` are derived from this description.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from braid.dialects.braid.scalar import Scalar


class IteratorKind(StrEnum):
    """Whether an iteration dim appears in the result or is reduced."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"


@dataclass(frozen=True)
class OperandSource:
    """The op's operand number `index`."""

    index: int


@dataclass(frozen=True)
class StageSource:
    """The result of stage number `index`, which stands before the reader."""

    index: int


Source: TypeAlias = OperandSource | StageSource


@dataclass(frozen=True)
class Padding:
    """Elements around a source that exist only for the reader, all equal to `value`.

    `low` and `high` count elements per dim of the source; the access map then indexes the
    padded source.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: float | int | bool


@dataclass(frozen=True)
class Access:
    """One read: `map` takes iteration dims to an index of `source`."""

    source: Source
    map: AffineMap
    padding: Padding | None = None


@dataclass(frozen=True)
class Stage:
    """One loop nest.

    For every point of the iteration space, `body` is evaluated on the values read (argument i
    is read i). Without reduction dims it is the result's element at `result`; with them the
    result's element is the `combine` of all bodies that fall on it, starting from the neutral
    element of `combine` (`add`, `mul`, `maximum`, `minimum`, `and`, `or`).
    Extents count iterations, DYNAMIC is open.

    In all stages of the dialect the result's dims come first: `result` is the projection on the
    first iteration dims, and a reduced dim that is kept in the result has one parallel iteration.
    """

    kinds: tuple[IteratorKind, ...]
    extents: tuple[int, ...]
    reads: tuple[Access, ...]
    result: AffineMap
    result_shape: tuple[int, ...]
    result_type: Attribute
    body: Scalar
    combine: str | None = None

    @property
    def reduction_dims(self) -> tuple[int, ...]:
        """Iteration dims that are reduced."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind is IteratorKind.REDUCTION)


@dataclass(frozen=True)
class Structure:
    """The stages of an op in order; op result r is the result of stage `results[r]`."""

    stages: tuple[Stage, ...]
    results: tuple[int, ...]


def neutral_element(
    combine: str, is_float: bool, bits: int, is_unsigned: bool = False
) -> float | int | bool:
    """The value that `combine` leaves every other value unchanged by.

    `bits` is the width of integers. Raises ValueError for a `combine` that is not a reduction.
    """
    infinity = float("inf")
    match combine:
        case "add" | "or":
            return 0.0 if is_float else 0
        case "mul":
            return 1.0 if is_float else 1
        case "and":
            return (1 << bits) - 1 if is_unsigned or bits == 1 else -1
        case "maximum" if is_unsigned:
            return 0
        case "minimum" if is_unsigned:
            return (1 << bits) - 1
        case "maximum":
            return -infinity if is_float else (-(1 << (bits - 1)) if bits > 1 else 0)
        case "minimum":
            return infinity if is_float else ((1 << (bits - 1)) - 1 if bits > 1 else 1)
        case _:
            raise ValueError(f"'{combine}' is not a reduction")


def parallel(count: int) -> tuple[IteratorKind, ...]:
    """`count` parallel dims."""
    return (IteratorKind.PARALLEL,) * count


def reduction(count: int) -> tuple[IteratorKind, ...]:
    """`count` reduction dims."""
    return (IteratorKind.REDUCTION,) * count
