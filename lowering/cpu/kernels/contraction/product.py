"""Describe matrix products and convolutions to what multiplies: a product and its storage.

A family (`gemm`, `conv`) finds the product in a group and says how it may be stored. An arithmetic
(floats by multiply-adds, numbers of 8 and 16 bits, AMX) makes its kernel; neither knows the other.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from braid.analysis.nests.contraction import Contraction, Product
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import extents_of, shape_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.shuffled import Positions
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.math.points import has_code
from braid.support.sizes.expression import Extent
from braid.targets.kernels.kernel_family import OpenCandidate
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class ProductStorage(ABC):
    """The ways to store the tensors of a product: A is its left operand, B the right one.

    Their extents are those that `extents_of` gives, numbers or sizes.
    """

    product: Product
    extents_of: ExtentsOf = shape_of

    may_overlap: ClassVar = False
    """True where the result may be written over A."""

    @abstractmethod
    def float_choices(
        self, group: FusedOp, lanes: int, ranked: Callable[[LayoutChoice], list[int]]
    ) -> Sequence[LayoutChoice]:
        """Return the layouts for floats, the preferred one first.

        `ranked` are columns of a block of B from best to worst, for a choice in which it has some.
        """

    @abstractmethod
    def stepped_choice(
        self, group: FusedOp, block: int, step: int, in_pairs: bool = False
    ) -> LayoutChoice:
        """Return layouts with B in blocks of columns and of a step's rows, and A in whole steps."""

    @abstractmethod
    def supports_strides(self, group: FusedOp, choice: LayoutChoice, step: int) -> bool:
        """Return whether tensors may be so far apart, where the loops can be made."""

    @abstractmethod
    def stored(self, choice: LayoutChoice, unit: VectorUnit, step: int) -> "StoredProduct":
        """Return the product in these layouts."""


@dataclass(frozen=True)
class StoredProduct(ABC):
    """A product in the layouts of `choice`, for vectors of `unit`.

    A step of the reduction is over `step` rows of B, which are neighbours in its blocks.
    """

    choice: LayoutChoice
    unit: VectorUnit
    step: int
    product: Product
    extents_of: ExtentsOf = shape_of

    @cached_property
    def _narrow(self) -> Contraction[Extent] | None:
        return self.contraction(1)

    @property
    def narrow(self) -> Contraction | None:
        """The loops with tiles of one column: whether there are any, and how large they are."""
        return cast(Contraction | None, self._narrow)

    @property
    def exists(self) -> bool:
        """Return whether vectors are contiguous in these layouts."""
        return self._narrow is not None

    @property
    @abstractmethod
    def block(self) -> int:
        """Columns in a block of B."""

    @property
    @abstractmethod
    def size(self) -> ContractionSize:
        """The size of the product, on which the time of a tile depends."""

    @property
    @abstractmethod
    def b_bytes(self) -> int:
        """Bytes of B that all rows read."""

    @property
    @abstractmethod
    def positions(self) -> Positions:
        """The positions of A that B has orders of."""

    @property
    @abstractmethod
    def float_vectors(self) -> Sequence[int]:
        """Vectors of floats of a tile that the layout of B allows."""

    @property
    def slowdown(self) -> float:
        """The factor by which floats take longer in these layouts than the tiles say."""
        return 1.0

    @abstractmethod
    def contraction(self, block: int) -> Contraction[Extent] | None:
        """Return the loops with tiles of `block` columns; None where vectors would not be
        contiguous.
        """

    def without_zeros(self) -> Self:
        """Return the one that makes no products with zeros, where there are loops for it."""
        return self

    def with_best_frame(self, seconds: Callable[[Self], float]) -> Self:
        """Return the one that takes less `seconds`, with products with zeros or without."""
        framed = self.without_zeros()
        return self if framed is self else min((framed, self), key=seconds)


def open_loops_of(stored: StoredProduct, block: int) -> Contraction[Extent]:
    """Return the loops of a product in layouts that were offered."""
    found = stored.contraction(block)
    assert found is not None, "the family was asked for layouts it did not offer"
    return found


def loops_of(stored: StoredProduct, block: int) -> Contraction:
    """Return the loops of a product whose extents are numbers."""
    return cast(Contraction, open_loops_of(stored, block))


@dataclass(frozen=True)
class ProductArithmetic(ABC):
    """A way to multiply and add up products, for some element types, on some machines.

    `gemm` and `conv` are the names in records of both families with this arithmetic, and their
    versions: see `KernelFamily`. With `accumulates`, sums have a separate type.
    """

    gemm: tuple[str, int]
    conv: tuple[str, int]
    accumulates: bool = True

    @abstractmethod
    def candidate(
        self, group: FusedOp, unit: VectorUnit, storage: ProductStorage, machine: Machine
    ) -> ScheduledCandidate[Any] | None:
        """Return the arithmetic of the product; None for other types, or if the machine does not
        support it."""

    def open_candidate(
        self, group: FusedOp, unit: VectorUnit, storage: ProductStorage
    ) -> OpenCandidate | None:
        """Return the arithmetic of a product with open dims; None if there is none."""
        return None


@dataclass(frozen=True)
class ProductFamily(VectorFamily):
    """A family of products by one arithmetic."""

    arithmetic: ProductArithmetic
    name: str = field(init=False)
    version: int = field(init=False)

    def __post_init__(self) -> None:
        """Take the name and version from the arithmetic."""
        for part, value in zip(("name", "version"), self.identity, strict=True):
            object.__setattr__(self, part, value)

    @property
    @abstractmethod
    def identity(self) -> tuple[str, int]:
        """The name and version of the family with its arithmetic."""

    @abstractmethod
    def find(self, group: FusedOp, extents_of: ExtentsOf | None = None) -> ProductStorage | None:
        """Return the product of a group, whose sums have a type of their own if the arithmetic's
        do; with `extents_of`, dims may be open.
        """

    def match(self, group: FusedOp) -> ScheduledCandidate[Any] | None:
        """Match one product of block arguments, the rest elementwise on its result."""
        found = self.find(group)
        if found is None or not has_code(found.product.points):
            return None
        unit = self.unit_of(found.product.op.output)
        return self.arithmetic.candidate(group, unit, found, self.machine)

    def match_open(self, group: FusedOp) -> OpenCandidate | None:
        """See the base class."""
        found = self.find(group, extents_of)
        if found is None or not has_code(found.product.points):
            return None
        unit = self.unit_of(found.product.op.output)
        return self.arithmetic.open_candidate(group, unit, found)
