"""Ask once about equal groups, such as those of the equal layers of a transformer."""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.regions import FusedOp

_Fact = TypeVar("_Fact")


class AttributeNumbers:
    """Numbers of attributes, the same for equal ones; each object is hashed once.

    To hash an attribute hashes all that is in it.
    """

    def __init__(self) -> None:
        self._numbers: dict[Attribute, int] = {}
        # The attribute is stored with its number, so that its identity is not reused.
        self._known: dict[int, tuple[Attribute, int]] = {}

    def of(self, attribute: Attribute) -> int:
        """Return the number of the attribute."""
        known = self._known.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._known[id(attribute)] = (attribute, number)
        return known[1]


class GroupForms:
    """The form of each group, the same for equal ones: make one for each pass.

    Groups of one module are equal if only the names of their ops differ, and which values of the
    same types they read; each of these must be in both groups known at compile time, an argument of
    the function, or neither. Whether the operands of a group are known must not change after the
    group's first lookup.
    """

    def __init__(self) -> None:
        self._numbers, self._known = AttributeNumbers(), ParameterExpressions()

    def of(self, group: FusedOp) -> Hashable:
        """Return the form of `group`; a changed group has another form."""
        return tuple(_form(group, self._known, self._numbers.of))


class EqualGroups(Generic[_Fact]):
    """Remembers a fact that groups of the same form share; it must not refer to ops."""

    def __init__(self, find: Callable[[FusedOp], _Fact]) -> None:
        """Take `find`, which is called for the first of equal groups, and for a changed one."""
        self._find = find
        self._facts: dict[Hashable, _Fact] = {}
        self._forms = GroupForms()

    def of(self, group: FusedOp) -> _Fact:
        """Return the fact of `group`."""
        form = self._forms.of(group)
        if form not in self._facts:
            self._facts[form] = self._find(group)
        return self._facts[form]


def _form(
    group: FusedOp, known: ParameterExpressions, number: Callable[[Attribute], int]
) -> Iterator[Hashable]:
    """Return all of `group`, with numbers in place of its values and blocks."""
    yield group.get_toplevel_object()
    values: dict[SSAValue, int] = {}
    blocks: dict[Block | None, int] = {group.parent: 0}
    for operand in group.operands:
        yield number(operand.type)
        yield _is_argument(operand)
        yield known.is_known(operand)
    for op in group.walk():
        yield type(op)
        yield blocks[op.parent]
        yield from (values.setdefault(operand, len(values)) for operand in op.operands)
        for result in op.results:
            values.setdefault(result, len(values))
            yield number(result.type)
        for region in op.regions:
            yield len(region.blocks)
            for block in region.blocks:
                blocks[block] = len(blocks)
                for argument in block.args:
                    values.setdefault(argument, len(values))
                    yield number(argument.type)
        yield from (blocks.setdefault(block, len(blocks)) for block in op.successors)
        for kind, named in enumerate((op.properties, op.attributes)):
            for name, attribute in named.items():
                if name != NAME:
                    yield kind
                    yield name
                    yield number(attribute)


def _is_argument(value: SSAValue) -> bool:
    return isinstance(value.owner, Block) and isinstance(value.owner.parent_op(), FuncOp)
