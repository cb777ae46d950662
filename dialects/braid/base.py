"""The common parts of braid's ops: type inference, verification, semantics, structure."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self, cast
from weakref import WeakKeyDictionary

from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, SSAValues
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attributes import LayoutAttr
from braid.dialects.braid.boxes import Box, sizes
from braid.dialects.braid.dtypes import i1, is_element_type, is_stored_only
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.size_limits import require_extents
from braid.dialects.braid.sizes import SizedLayoutAttr, extents_of_type, sized_type, verify_sizes
from braid.dialects.braid.structure import Structure, structure_fault
from braid.dialects.braid.tiling import IterationDim, Reads, Tile, domain_of, structured_reads
from braid.support.sizes.expression import Extent

AnyTensor = TensorType[Any]

OPERATOR_FORMAT = "operands attr-dict `:` functional-type(operands, results)"
"""Assembly format of all ops that only map operands to results."""


class TensorOp(IRDLOperation, ABC):
    """An op from tensors to tensors without side effects.

    A subclass defines the result types as functions of its operands and attributes, and computes
    the results; the verifier and the builder follow from that.
    """

    traits = traits_def(Pure())
    assembly_format: ClassVar[str | None] = OPERATOR_FORMAT

    @abstractmethod
    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the logical result types.

        Raises VerifyException where operands and attributes do not fit together.
        """

    @abstractmethod
    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the results for operands given as logical arrays, whatever the layouts are.

        This is the meaning of the op. It is written in numpy alone, independently of
        `structure` and of every lowering.
        """

    @classmethod
    def on(cls, *operands: SSAValue | Operation, **attributes: Attribute | None) -> Self:
        """Build the op with the result types inferred; attributes with the value None are
        omitted."""
        present = {name: value for name, value in attributes.items() if value is not None}
        values = [SSAValue.get(operand) for operand in operands]
        op = cls.create(operands=values, attributes=present)
        set_result_types(op, op.checked_result_types())
        return op

    @classmethod
    def declared(
        cls, type: AnyTensor, *operands: SSAValue | Operation, **attributes: Attribute
    ) -> Self:
        """Build the op with a result of `type`; raise VerifyException if it cannot have it."""
        values = [SSAValue.get(operand) for operand in operands]
        op = cls.create(operands=values, attributes=attributes)
        set_result_types(op, [type])
        op.checked_result_types()
        return op

    def checked_result_types(self) -> Sequence[AnyTensor]:
        """Return the logical result types.

        Raises VerifyException as `infer_result_types`, and for extents that no tensor has.
        """
        types = self.infer_result_types()
        for type in types:
            require_extents(extents_of_type(type))
        return types

    def verify_(self) -> None:
        """Check result types against the inferred ones, extents, element types and layouts."""
        for value in (*self.operands, *self.results):
            verify_extents(value)
            verify_layout_rank(value)
        for operand in self.operands:
            require_extents(shape_of(operand))
        self.verify_element_types()
        expected = self.checked_result_types()
        count = len(self.results)
        require(len(expected) == count, "expected {} results, got {}", len(expected), count)
        for index, (want, result) in enumerate(zip(expected, self.results, strict=True)):
            verify_logical_type(f"result {index}", want, result.type)

    def verify_element_types(self) -> None:
        """Raise VerifyException for element types that are stored but not computed with."""
        for type in {element_type_of(value) for value in (*self.operands, *self.results)}:
            require(is_element_type(type), "element type {} is not supported", type)

    def iteration_domain(self) -> list[IterationDim]:
        """Return the dims of the loop nest: those of the (first) result, then reduced ones."""
        return [IterationDim(extent) for extent in self.result_type().get_shape()]

    def tile(self, box: Box) -> Tile | None:
        """Return how the iterations `box` are computed; None where parts like it cannot be.

        Dims of the iteration domain after those of `box` are whole.
        """
        return None

    def tiled(self, tile: Tile, box: Box, operands: Sequence[SSAValue]) -> Operation:
        """Return the op of this kind that computes `tile`, not inserted; its types have no layouts.

        `operands` are the slices of those that are read. Partial results of reduced dims have the
        size of whole ones.
        """
        results: list[AnyTensor] = []
        for index in range(len(self.results)):
            type = self.result_type(index)
            results.append(tensor_type(type.element_type, sizes(box)[: type.get_num_dims()]))
        attributes = {**self.attributes, **tile.attributes}
        op = self.__class__.create(operands=operands, result_types=results, attributes=attributes)
        op.location = self.location
        return op

    def operand_type(self, index: int) -> AnyTensor:
        """Return the type of operand `index`."""
        return cast(AnyTensor, self.operands[index].type)

    def result_type(self, index: int = 0) -> AnyTensor:
        """Return the type of result `index`."""
        return cast(AnyTensor, self.results[index].type)


@dataclass
class _KnownStructure:
    """The structure of an op with these types and attributes; `computes` is by `Tile.key`."""

    facts: tuple[Attribute, ...]
    structure: Structure
    computes: dict[Hashable, bool] = field(default_factory=dict[Hashable, bool])


_STRUCTURES = WeakKeyDictionary[Operation, _KnownStructure]()
"""Tiles of one op are asked for by the thousand, of a few sizes only."""


class StructuredOp(TensorOp, ABC):
    """An op that is a sequence of loop nests over iteration spaces."""

    @abstractmethod
    def structure(self) -> Structure:
        """Return the stages that compute the results, on logical indices."""

    def iteration_domain(self) -> list[IterationDim]:
        """Return the iterations of the last stage."""
        return domain_of(self._known_structure().structure)

    def tile(self, box: Box) -> Tile | None:
        """Return the slices that the structure reads for `box`.

        The result is None if the op cannot compute the box from these slices alone.
        """
        known = self._known_structure()
        reads = structured_reads(known.structure, [shape_of(value) for value in self.operands], box)
        if reads is None or len(reads.operands) != len(self.operands):
            return None
        attributes = self.tile_attributes(box, reads)
        if attributes is None:
            return None
        slices = tuple(reads.operands[index] for index in range(len(self.operands)))
        tile = Tile(slices, attributes)
        key = tile.key, sizes(box)
        if key not in known.computes:
            known.computes[key] = self._computes(tile, box, known.structure, reads)
        return tile if known.computes[key] else None

    def _known_structure(self) -> "_KnownStructure":
        """Return the structure, with the tiles of which is known whether the op computes them."""
        facts = (*self.operand_types, *self.result_types, *self.attributes.values())
        known = _STRUCTURES.get(self)
        if known is None or known.facts != facts:
            known = _STRUCTURES[self] = _KnownStructure(facts, self.structure())
        return known

    def tile_attributes(self, box: Box, reads: Reads) -> Mapping[str, Attribute] | None:
        """Return the attributes that the op for `box` has instead; None where no op computes it."""
        return {}

    def _computes(self, tile: Tile, box: Box, structure: Structure, reads: Reads) -> bool:
        """Return whether the op on the slices is this one's loop nest on the box.

        It makes more where a dim cannot be cut, as the row of a softmax, or something else where
        a body knows the extents.
        """
        types = [
            TensorType(element_type_of(value), sizes(part))
            for value, part in zip(self.operands, tile.operands, strict=True)
            if part is not None
        ]
        part = self.tiled(tile, box, Block(arg_types=types).args)
        assert isinstance(part, StructuredOp)
        try:
            (inferred,) = part.infer_result_types()
            stages = part.structure().stages
        except VerifyException:
            return False
        finally:
            part.drop_all_references()
        return inferred.get_shape() == part.result_type().get_shape() and all(
            (stages[number].extents, stages[number].body)
            == (sizes(iterations), structure.stages[number].body)
            for number, iterations in reads.iterations.items()
        )

    def verify_(self) -> None:
        """Check the types; in ops of other packages, also whether the structure fits the op."""
        super().verify_()
        if not type(self).__module__.startswith("braid."):
            _verify_structure(self)


class IndirectOp(TensorOp, ABC):
    """A loop nest whose body also reads at computed indices (`Load`).

    Not a `StructuredOp`, since slices, splits or layouts derived from access maps would miss those
    reads: an operand that is read by a `Load` is needed whole.
    """

    @abstractmethod
    def structure(self) -> Structure:
        """Return the stages that compute the results, on logical indices."""

    def verify_(self) -> None:
        """Run the checks of `StructuredOp.verify_`."""
        super().verify_()
        if not type(self).__module__.startswith("braid."):
            _verify_structure(self)


class DecomposableOp(TensorOp, ABC):
    """An op that is a sequence of other ops; lowering needs nothing else for it."""

    @abstractmethod
    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Insert ops that compute the results, and return one value per result.

        The op itself stays; `decomposition.decompose_op` replaces it.
        """


def _verify_structure(op: StructuredOp | IndirectOp) -> None:
    try:
        fault = structure_fault(op.structure(), op)
    except VerifyException:
        raise
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    require(fault is None, f"'{op.name}' op has a wrong 'structure': {fault}")


def set_result_types(op: Operation, types: Sequence[Attribute]) -> None:
    """Give an op that was built without results results of these types."""
    op.results = SSAValues(OpResult(type, op, index) for index, type in enumerate(types))


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Return the logical shape of a tensor value, DYNAMIC for open dims."""
    return cast(AnyTensor, value.type).get_shape()


def extents_of(value: SSAValue) -> tuple[Extent, ...]:
    """Return the logical shape with the sizes of open dims, DYNAMIC for unknown ones."""
    return extents_of_type(cast(AnyTensor, value.type))


def element_type_of(value: SSAValue) -> Attribute:
    """Return the element type of a tensor value."""
    return cast(AnyTensor, value.type).element_type


def verify_extents(value: SSAValue) -> None:
    """Raise VerifyException for a tensor whose sizes are not those of its open dims.

    Fails, too, for a negative extent that does not mark an open dim.
    """
    type = value.type
    if not isinstance(type, TensorType):
        return
    if min(type.get_shape(), default=0) < DYNAMIC:
        raise VerifyException(f"type {type} has an extent below 0")
    verify_sizes(cast(AnyTensor, type))


def verify_layout_rank(value: SSAValue) -> None:
    """Raise VerifyException if a tensor's layout is for another rank."""
    type = value.type
    if not isinstance(type, TensorType):
        return
    if not isinstance(type.encoding, LayoutAttr | SizedLayoutAttr):
        return
    layout = type.encoding.layout
    if not layout.is_abstract and layout.rank != type.get_num_dims():
        raise VerifyException(
            f"layout '{layout}' is for rank {layout.rank}, the tensor has rank "
            f"{type.get_num_dims()}"
        )


def verify_logical_type(what: str, expected: AnyTensor, actual: Attribute) -> None:
    """Raise VerifyException unless shapes (open dims fit all) and element types agree."""
    if isinstance(actual, TensorType):
        tensor = cast(AnyTensor, actual)
        if tensor.element_type == expected.element_type and fits(
            extents_of_type(tensor), extents_of_type(expected)
        ):
            return
    raise VerifyException(f"{what} has type {actual}, expected {expected}")


def fits(left: Sequence[Extent], right: Sequence[Extent]) -> bool:
    """Return whether two shapes may be equal: at some sizes, where dims are open."""
    return len(left) == len(right) and all(map(may_equal, left, right))


def tensor_type(element_type: Attribute, shape: Iterable[Extent]) -> AnyTensor:
    """Return the type of row-major tensors of this shape."""
    return _tensor_type(element_type, tuple(shape))


@lru_cache(maxsize=4096)
def _tensor_type(element_type: Attribute, shape: tuple[Extent, ...]) -> AnyTensor:
    # Inference makes the types of all ops again; xDSL verifies a type whenever one is made.
    return sized_type(element_type, shape)


def require(condition: bool, message: str, *values: object) -> None:
    """Raise VerifyException with `message` unless `condition` holds; `values` replace each `{}`.

    Attributes are given as values: to print one takes longer than to check an op.
    """
    if not condition:
        raise VerifyException(message.format(*values) if values else message)


def integers(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """Return `array<i64: …>`, the form of all integer lists of the dialect."""
    return DenseArrayBase.from_list(i64, list(values))


def integer(value: int) -> IntegerAttr[IntegerType]:
    """Return `value : i64`, the form of all integers of the dialect."""
    return IntegerAttr(value, i64)


def require_summable(element_type: Attribute) -> None:
    """Raise VerifyException for bools, whose sum may mean a count, a parity or an or."""
    require(element_type != i1, "values of element type i1 cannot be added up; cast them")


def require_computed(element_type: Attribute) -> None:
    """Raise VerifyException for an element type that is only moved and bitcast."""
    require(
        not is_stored_only(element_type),
        "element type {} is stored but not computed with; bitcast it to ui8",
        element_type,
    )


def require_dim(dim: int, rank: int) -> None:
    """Raise VerifyException unless `dim` is a dim of a tensor of rank `rank`."""
    require(0 <= dim < rank, f"dim is {dim}, expected 0 to {rank - 1}")


def require_one_of(what: str, actual: str, expected: Iterable[str]) -> None:
    """Raise VerifyException unless `actual` is one of the names `expected`."""
    names = list(expected)
    require(actual in names, f"{what} is '{actual}', expected one of {names}")
