"""Find the values that are made of parameters and constants alone: known once the weights are."""

import math
from collections.abc import Callable, Iterable

from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.attribute_names import OPEN_TYPES
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sized_ops import has_sizes

PREPARE = "prepare"
"""Symbol of the function that compilation runs once to make the prepared parameters."""

_KEY = "prepared/"
"""The prefix of the keys of prepared parameters, before a number."""

_MAX_ELEMENTS = 1 << 18
"""A result larger than this is computed at compile time only if it is not much larger than its
operands: weights that are repeated many times would fill the memory."""


MOST_ELEMENTS = 1 << 28
"""A result larger than this must not be larger than all of its operands, since each of many
concatenations might double it."""


class ParameterExpressions:
    """Memoized answers for one module; ops that are created later are classified when asked.

    Ops for which `excludes` holds count as unknown, and so do values computed from them.
    """

    def __init__(self, excludes: Callable[[Operation], bool] = lambda op: False) -> None:
        self._excludes = excludes
        self._known: dict[Operation, bool] = {}

    def is_known(self, value: SSAValue) -> bool:
        """Return whether `value` depends on parameters and constants alone."""
        owner = value.owner
        return not isinstance(owner, Block) and self._is_known_op(owner)

    def all_known(self, values: Iterable[SSAValue]) -> bool:
        """Return whether all `values` depend on parameters and constants alone."""
        return all(self.is_known(value) for value in values)

    def _is_known_op(self, op: Operation) -> bool:
        """Walk with a stack of its own: expressions may be deeper than Python's."""
        stack = [op]
        while stack:
            current = stack[-1]
            if current in self._known:
                stack.pop()
                continue
            if not _is_computable(current) or self._excludes(current):
                self._known[current] = False
                continue
            owners = [operand.owner for operand in current.operands]
            ops = [owner for owner in owners if isinstance(owner, Operation)]
            open_ = [owner for owner in ops if owner not in self._known]
            if len(ops) < len(owners):
                self._known[current] = False
            elif open_:
                stack.extend(open_)
            else:
                self._known[current] = all(self._known[owner] for owner in ops)
        return self._known[op]


def first_free_key(keys: Iterable[str]) -> int:
    """Return the least number above the numbers of `keys`; keys of other forms are ignored."""
    numbers = (key.removeprefix(_KEY) for key in keys if key.startswith(_KEY))
    return max((int(n) for n in numbers if n.isdecimal()), default=-1) + 1


def prepared_key(number: int) -> str:
    """Return the key of a result of `@prepare`."""
    return f"{_KEY}{number}"


def computed_beforehand() -> ParameterExpressions:
    """Return the values that compilation computes: known ones, unless they are far larger than
    their parts.
    """
    return ParameterExpressions(excludes=_too_large)


def _too_large(op: Operation) -> bool:
    if is_leaf(op):
        return False
    inputs = [elements(operand) for operand in op.operands]
    most = max(min(most_elements(sum(inputs)), MOST_ELEMENTS), *inputs, 0)
    return sum(map(elements, op.results)) > most


def elements(value: SSAValue) -> int:
    """Return how many elements a tensor has."""
    return math.prod(shape_of(value))


def most_elements(inputs: int) -> int:
    """Return how many elements compilation computes at most from `inputs` elements."""
    return max(_MAX_ELEMENTS, 2 * inputs)


def _is_computable(op: Operation) -> bool:
    """Return whether compilation could run `op`: not one of open dims, or known costs alone.

    Nor can it be if it has open dims that are not bound.
    """
    if not isinstance(op, TensorOp | FusedOp) or isinstance(op, OpaqueOp) or has_sizes(op):
        return False
    if OPEN_TYPES in op.attributes:
        return False
    return all(DYNAMIC not in shape_of(result) for result in op.results)


def is_leaf(op: Operation) -> bool:
    """Return whether `op` is itself a parameter or a constant: not sizes at likely values."""
    return isinstance(op, ParameterOp | ConstantOp) and OPEN_TYPES not in op.attributes
