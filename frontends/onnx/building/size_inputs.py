"""Inputs whose elements are sizes: which are asked for, and which must not be.

Shapes may depend on the values of small inputs of integers. Their elements can be sizes, which the
caller's arguments tell before a run, but sizes are never negative. So an input may hold sizes only
where a run with a negative element would be invalid: where a negative one makes what a node needs
as sizes negative too. Other inputs are data, which decide sizes while the model runs.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Operation, OpResult, SSAValue

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import as_array, evaluate_sizes, fixed_shape, is_integral
from braid.frontends.onnx.building.builder import MOST_SIZE_ELEMENTS, Builder
from braid.support.sizes.assumptions import Answer, Assumed, Assumptions
from braid.support.sizes.expression import Extent, Size, SizeError, symbol, symbols_of

_ANY = Assumed(minimum=-(2**63))
"""What is known of an element that may be negative."""


def request_value(b: Builder, value: SSAValue, *, as_sizes: bool = True) -> bool:
    """Ask for a value that a node needs: it is known where the inputs behind it hold sizes.

    Of a value that is needed `as_sizes`, which data may decide too, only inputs are asked for that
    no valid run gives negative elements.

    Return whether the import is to be tried again, with more inputs that hold sizes, or with
    fewer, since those behind the value do not tell it.
    """
    may_tell = {name for argument, name in b.inputs.items() if may_hold_sizes(argument)}
    behind = may_tell & set(inputs_behind(b, value))
    asked = behind & _never_negative(b, value) if as_sizes else behind
    requested = asked - b.size_inputs.keys() - b.useless
    if as_sizes:
        b.useful |= asked & b.size_inputs.keys()
    useless = (behind & b.size_inputs.keys()) - b.useful
    b.requested |= requested
    b.useless |= useless
    return bool(requested or useless)


def note_use(b: Builder, sizes: Array) -> None:
    """Note that a node needs these sizes, which elements of inputs may tell."""
    used = symbols_of(*(size for size in sizes.reshape(-1).tolist() if isinstance(size, Size)))
    b.useful |= {name for name, own in b.size_inputs.items() if used & set(own)}


def inputs_behind(b: Builder, value: SSAValue) -> list[str]:
    """Return the names of the model's inputs on whose data `value` depends."""
    seen: dict[SSAValue, None] = {}
    waiting = [value]
    while waiting:
        if (value := waiting.pop()) in seen:
            continue
        seen[value] = None
        owner = value.owner
        above = owner if isinstance(owner, Operation) else owner.parent_op()
        if above is not None:
            waiting += [operand for op in above.walk() for operand in op.operands]
    return [name for argument, name in b.inputs.items() if argument in seen]


def may_hold_sizes(argument: SSAValue) -> bool:
    """Return whether the elements of an input may be sizes."""
    return _is_small(argument) and len(extents_of(argument)) <= 1 and _is_integer(argument)


def _is_small(value: SSAValue) -> bool:
    shape = extents_of(value)
    is_open = any(isinstance(extent, Size) for extent in shape)
    return not is_open and math.prod(fixed_shape(value)) <= MOST_SIZE_ELEMENTS


def _is_integer(value: SSAValue) -> bool:
    return element_type_of(value) in (i32, i64)


def _never_negative(b: Builder, value: SSAValue) -> set[str]:
    """Return the names of inputs without a negative element in any run where `value` has none.

    What other nodes have said of an input's elements counts too.
    """
    signed = _Signed(b)
    found = signed.array_of(value)
    facts = [] if found is None else found.reshape(-1).tolist()
    for argument, own in signed.elements.items():
        if (name := b.inputs.get(argument)) is not None:
            b.never_negative |= {
                (name, number) for number, each in enumerate(own) if signed.follows(each, facts)
            }
    return {
        name
        for argument, name in b.inputs.items()
        if may_hold_sizes(argument)
        and all((name, n) in b.never_negative for n in range(math.prod(fixed_shape(argument))))
    }


@dataclass
class _Signed:
    """Values as expressions of elements that may be negative, those of inputs and others."""

    builder: Builder
    elements: dict[SSAValue, list[Size]] = field(default_factory=dict[SSAValue, list[Size]])
    _arrays: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, Array | None])
    _known: Assumptions = field(default_factory=lambda: Assumptions.of({}))

    def array_of(self, value: SSAValue) -> Array | None:
        """Return the elements of a value; None where these are no few numbers."""
        waiting = [value]
        while waiting:
            operands = [own for own in self._operands(waiting[-1]) if own not in self._arrays]
            if operands:
                waiting += operands
                continue
            last = waiting.pop()
            if last not in self._arrays:
                self._arrays[last] = self._evaluated(last)
        return self._arrays[value]

    def follows(self, element: Size, facts: Sequence[Extent]) -> bool:
        """Return whether an element is not negative wherever no fact is."""
        own = symbols_of(element)
        for fact in facts:  # together they say more, which takes longer to find out
            if isinstance(fact, Size) and own <= symbols_of(fact):
                known = Assumptions.of(self._known.by_name, [fact])
                if known.at_most(0, element) is Answer.YES:
                    return True
        return False

    def _operands(self, value: SSAValue) -> Iterator[SSAValue]:
        """Yield the operands by which a value is computed, where it has a rule."""
        is_few = _is_small(value) and (_is_integer(value) or element_type_of(value) == i1)
        if is_few and self.builder.sizes_of(value) is None and isinstance(value.owner, TensorOp):
            yield from value.owner.operands

    def _evaluated(self, value: SSAValue) -> Array | None:
        """Return the elements of a value whose operands are evaluated."""
        if (known := self.builder.sizes_of(value)) is not None:
            return known if known.size <= MOST_SIZE_ELEMENTS else None
        operands = [self._arrays[own] for own in self._operands(value)]
        given = [own for own in operands if own is not None]
        if given and len(given) == len(operands) and isinstance(op := value.owner, TensorOp):
            with suppress(SizeError):
                results = evaluate_sizes(op, given, self._known)
                if results is not None and all(map(is_integral, results)):
                    return results[op.results.index(cast("OpResult", value))]
        return self._unknown(value)

    def _unknown(self, value: SSAValue) -> Array | None:
        """Return elements of which nothing is known."""
        if not (_is_small(value) and _is_integer(value)):
            return None
        first, count = len(self._known.symbols), math.prod(fixed_shape(value))
        names = [f"element {first + number} of unknown sign" for number in range(count)]
        self._known = Assumptions.of({**self._known.by_name, **dict.fromkeys(names, _ANY)})
        self.elements[value] = [symbol(name) for name in names]
        return as_array(self.elements[value], fixed_shape(value))
