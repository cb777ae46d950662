"""What is asked once of equal groups, such as those of the equal layers of a transformer."""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.regions import FusedOp
from braid.targets.kernels.attribute_numbers import AttributeNumbers

_Fact = TypeVar("_Fact")


class EqualGroups(Generic[_Fact]):
    """Remembers a fact that equal groups share: make one for each pass.

    Groups of one module are equal if only the names of their ops differ, and which values of the
    same types they read: these are known at compile time, arguments of the function, or neither in
    both. The fact must not refer to ops.
    """

    def __init__(self, find: Callable[[FusedOp], _Fact]) -> None:
        """`find` is asked for the first of equal groups, and for one that was changed.

        What makes their operands must stay as known, or unknown, as it is when it is first met.
        """
        self._find = find
        self._facts: dict[tuple[Hashable, ...], _Fact] = {}
        self._numbers = AttributeNumbers()
        self._known = ParameterExpressions()

    def of(self, group: FusedOp) -> _Fact:
        """The fact of `group`."""
        form = tuple(_form(group, self._known, self._numbers.of))
        if form not in self._facts:
            self._facts[form] = self._find(group)
        return self._facts[form]


def _form(
    group: FusedOp, known: ParameterExpressions, number: Callable[[Attribute], int]
) -> Iterator[Hashable]:
    """All of `group`, with numbers in place of its values and blocks."""
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
