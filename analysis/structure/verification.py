"""Verify a module with every op's own verifier, and check SSA dominance.

xDSL's verifier neither says which op it rejects nor checks that definitions dominate their
uses; both are added here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import definition_location, source_location
from braid.analysis.structure.dominance import DominatorTree
from braid.analysis.structure.region_types import verify_upstream_op
from braid.dialects.braid.attribute_checks import expected_kind, misplaced
from braid.dialects.braid.attribute_names import NAME, NAMESPACE, known_names
from braid.dialects.braid.base import TensorOp, shape_of, verify_extents, verify_layout_rank
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.dtypes import dense_fault
from braid.dialects.braid.names import names_of
from braid.dialects.braid.size_limits import require_extents, require_rank
from braid.dialects.braid.sizes import value_sizes
from braid.support.errors import BraidError, Note, did_you_mean

_Kind = tuple[object, ...]

_GRAPH_REGION_OPS = frozenset({"builtin.module", "hw.module"})
"""Ops in whose regions order has no meaning; xDSL does not model MLIR's RegionKindInterface."""


class InvalidIRError(BraidError):
    """The IR breaks a rule of MLIR or of one of its dialects."""


def verify_module(module: Operation) -> None:
    """Check `module` and everything in it, in time linear in the number of ops and operands.

    Raises `InvalidIRError` with the location of the first op that is wrong, innermost first.
    """
    for _, error in invalid_ops(module):
        raise error
    verify_dominance(module)


def invalid_ops(
    module: Operation, skipped: Callable[[Operation], bool] = lambda op: False
) -> Iterator[tuple[Operation, InvalidIRError]]:
    """Yield the ops of `module` that break a rule, innermost first, without looking at dominance.

    Those that are `skipped` are not looked at.
    """
    valid: set[_Kind] = set()
    numbers = _Numbers()
    ops = list(module.walk(region_first=True))
    counts = Counter(map(type, ops))
    for op in ops:
        # The only op of its class has a kind of its own.
        kind = _kind(op, numbers) if counts[type(op)] > 1 else None
        if (kind is not None and kind in valid) or skipped(op):
            continue
        try:
            _verify_op(op)
        except InvalidIRError as error:
            yield op, error
            continue
        if kind is not None:
            valid.add(kind)


def _verify_op(op: Operation) -> None:
    """Raise `InvalidIRError` unless `op` follows all rules but those of dominance."""
    try:
        _verify_elements(op)  # first: printing an op fails where these are wrong
        _verify_shapes(op)
        _verify_definition(op)
        verify_upstream_op(op)
        _verify_blocks_not_empty(op)
        _verify_attributes(op)
        _verify_value_sizes(op)
    except VerifyException as error:
        message = " ".join(str(error).removeprefix("Operation does not verify: ").split())
        if op.name not in message:
            message = f"'{op.name}' op {message}"
        location = source_location(op)
        named = names_of(op) if location is None else ()
        notes = [Note(f"the op computes '{name}' of the model") for name in named]
        raise InvalidIRError(message, location=location, notes=notes) from error


class _Numbers:
    """A number for each attribute of a module, the same for equal ones; each is hashed once."""

    def __init__(self) -> None:
        self._of_object: dict[int, int] = {}
        self._of_value: dict[Attribute, int] = {}

    def of(self, attribute: Attribute) -> int:
        number = self._of_object.get(id(attribute))  # the module keeps it alive
        if number is None:
            number = self._of_value.setdefault(attribute, len(self._of_value))
            self._of_object[id(attribute)] = number
        return number


def _kind(op: Operation, numbers: _Numbers) -> _Kind | None:
    """Return the key on which the verifier of `op` depends; None if that may be more than types and
    attributes.

    Names of ops and parameters do not matter, so that in large graphs most ops equal an earlier
    one.
    """
    if not isinstance(op, TensorOp) or op.regions or op.next_op is None:
        return None
    called = (NAME, "key") if isinstance(op, ParameterOp) else (NAME,)
    return (
        type(op),
        *((type(operand), numbers.of(operand.type)) for operand in op.operands),
        *(numbers.of(result.type) for result in op.results),
        *((name, numbers.of(a)) for name, a in op.attributes.items() if name not in called),
        *(type(op.attributes.get(name)) for name in called),
        None,
        *((name, numbers.of(value)) for name, value in op.properties.items()),
    )


def _verify_attributes(op: Operation) -> None:
    """Check that attributes of the dialect are known, in their place, and of the right kind.

    Braid gives attributes of its namespace a meaning.
    """
    ports = (op.properties.get(key) for key in ("arg_attrs", "res_attrs"))
    of_ports = (
        each
        for port in ports
        if isinstance(port, ArrayAttr)
        for each in cast(ArrayAttr[Attribute], port)
    )
    dictionaries = (each.data for each in of_ports if isinstance(each, DictionaryAttr))
    items = (each.items() for each in (op.attributes, *dictionaries))
    for name, attribute in chain.from_iterable(items):
        if not name.startswith(NAMESPACE):
            continue
        expected = expected_kind(name, attribute)
        if expected is not None:
            raise InvalidIRError(
                f"'{name}' of '{op.name}' op is {attribute}, expected {expected}",
                location=source_location(op),
            )
        if name not in known_names():
            raise InvalidIRError(
                f"'{op.name}' op has an attribute '{name}', which means nothing",
                location=source_location(op),
                hint=did_you_mean(name, known_names()) or "use a namespace of your own",
            )
        if (fault := misplaced(name, attribute, op)) is not None:
            raise InvalidIRError(fault[0], location=source_location(op), hint=fault[1])


def _verify_value_sizes(op: Operation) -> None:
    """Raise VerifyException for elements of arguments that cannot be sizes."""
    if isinstance(op, FuncOp):
        value_sizes(op)


def _verify_definition(op: Operation) -> None:
    try:
        op.verify(verify_nested_ops=False)
    except (VerifyException, BraidError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise VerifyException(f"its parts do not fit together: {error}") from error
    except Exception as error:
        if type(error) is not Exception:  # which some of xDSL's verifiers raise
            raise
        raise VerifyException(str(error)) from error


def _verify_elements(op: Operation) -> None:
    for value in chain(op.attributes.values(), op.properties.values()):
        if isinstance(value, DenseIntOrFPElementsAttr):
            fault = dense_fault(cast(DenseIntOrFPElementsAttr, value))
            if fault is not None:
                raise VerifyException(fault)


def _verify_shapes(op: Operation) -> None:
    """Check ranks, and the extents, sizes and layouts of values that no op of braid makes."""
    arguments = (block.args for region in op.regions for block in region.blocks)
    values: Iterable[SSAValue] = chain(op.results, *arguments)
    for value in values:
        if not isinstance(value.type, TensorType):
            continue
        shape = shape_of(value)
        if isinstance(op, TensorOp):
            require_rank(len(shape))
        else:
            require_extents(shape)
            verify_extents(value)
            verify_layout_rank(value)


def _verify_blocks_not_empty(op: Operation) -> None:
    for region in op.regions:
        block = region.first_block
        if block is not None and block.first_op is None and not op.has_trait(NoTerminator):
            raise VerifyException("expects its blocks to end in a terminator, but one is empty")


def verify_dominance(top: Operation) -> None:
    """Check that every value nested in `top` is defined before it is used, on every path.

    Raises `InvalidIRError` at the first use, in textual order, that no definition dominates.
    """
    for _, error in undominated_uses(top):
        raise error


def undominated_uses(top: Operation) -> Iterator[tuple[Operation, InvalidIRError]]:
    """Yield the ops nested in `top` that use values that do not dominate them, in textual order."""
    dominance = _ValueDominance(top)
    for op in dominance.ops:
        _verify_readers(op, dominance)
        for index, operand in enumerate(op.operands):
            if not dominance.dominates(operand, op):
                yield (
                    op,
                    InvalidIRError(
                        f"'{op.name}' op operand #{index} does not dominate this use",
                        location=source_location(op),
                        notes=[Note("the operand is defined here", definition_location(operand))],
                    ),
                )


def _verify_readers(op: Operation, dominance: "_ValueDominance") -> None:
    """Check that no op that a rewrite made and left out still reads results of `op`."""
    arguments = (block.args for region in op.regions for block in region.blocks)
    for value in chain(op.results, *arguments):
        for use in value.uses:
            if not dominance.has(use.operation):
                raise InvalidIRError(
                    f"'{op.name}' op defines a value that a '{use.operation.name}' op reads, which"
                    " is not part of the module",
                    location=source_location(op),
                )


class _ValueDominance:
    """Dominance of values over ops; the trees of multi-block regions are built when needed."""

    def __init__(self, top: Operation) -> None:
        self._index = {op: index for index, op in enumerate(top.walk())}
        self.ops = self._index.keys()
        """In textual order."""
        self._trees: dict[Region, DominatorTree] = {}

    def has(self, op: Operation) -> bool:
        """Return whether `op` is nested in the root."""
        return op in self._index

    def dominates(self, value: SSAValue, user: Operation) -> bool:
        if isinstance(value, OpResult):
            definition, block = value.op, value.op.parent
            # By far the most common case, and the walk's numbering answers it at once.
            if block is user.parent and self._index[definition] < self._index[user]:
                return True
        else:
            definition, block = None, value.owner
        if not isinstance(block, Block) or block.parent is None:
            return False
        ancestor = _ancestor_in_region(user, block.parent)
        if ancestor is None or ancestor.parent is None:
            return False
        owner = block.parent.parent
        if owner is not None and owner.name in _GRAPH_REGION_OPS:
            return True
        if ancestor.parent is block:
            return definition is None or self._index[definition] < self._index[ancestor]
        return self._tree(block.parent).dominates(block, ancestor.parent)

    def _tree(self, region: Region) -> DominatorTree:
        if region not in self._trees:
            self._trees[region] = DominatorTree(region)
        return self._trees[region]


def _ancestor_in_region(op: Operation, region: Region) -> Operation | None:
    """Return `op` or the op around it that lies directly in a block of `region`."""
    current: Operation | None = op
    while current is not None:
        if current.parent is not None and current.parent.parent is region:
            return current
        current = current.parent_op()
    return None
