"""Recomputation as attributes of ops: how `select-rematerialization` writes what it decided.

Sets have numbers, unique within a function. A set's members carry its number in
`braid.recompute_sets`, and the op that it is for in `braid.recompute_operands`, at the operands
that are to come from the copy. Under a budget the decision is `braid.order` with positions that
occur as often as the op runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i64
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.memory_graph import viewed
from braid.dialects.braid.attribute_names import RECOMPUTE_OPERANDS, RECOMPUTE_SETS
from braid.passes.rematerialization.function_sets import PlannedSet
from braid.support.errors import BraidError

_HINT = "run select-rematerialization again, or remove its attributes"


@dataclass(frozen=True)
class DecidedSet:
    """Set `number`: the ops to copy, in their order, in front of `reader` for its `operands`."""

    number: int
    members: tuple[Operation, ...]
    reader: Operation
    operands: tuple[int, ...]


def write_sets(sets: Sequence[PlannedSet]) -> None:
    """Add `sets` to the decisions on ops, numbered from 0 on."""
    for number, planned in enumerate(sets):
        for member in planned.members:
            numbers = [*_numbers(member, RECOMPUTE_SETS), number]
            member.attributes[RECOMPUTE_SETS] = _array(numbers)
        reader = planned.reader
        old = list(_numbers(reader, RECOMPUTE_OPERANDS)) or [-1] * len(reader.operands)
        entry = [
            number if viewed(operand) is planned.tensor else before
            for operand, before in zip(reader.operands, old, strict=True)
        ]
        reader.attributes[RECOMPUTE_OPERANDS] = _array(entry)


def clear_sets(function: Operation) -> None:
    """Remove the decisions on the ops of `function`."""
    for op in function.walk():
        op.attributes.pop(RECOMPUTE_SETS, None)
        op.attributes.pop(RECOMPUTE_OPERANDS, None)


def read_sets(function: Operation) -> list[DecidedSet]:
    """Return the sets decided on for `function`, by number.

    Raises BraidError where members, readers and operands do not fit together.
    """
    members: dict[int, list[Operation]] = {}
    readers: dict[int, tuple[Operation, list[int]]] = {}
    for op in function.walk():
        for number in _numbers(op, RECOMPUTE_SETS):
            members.setdefault(number, []).append(op)
        for index, number in enumerate(_numbers(op, RECOMPUTE_OPERANDS)):
            if number < 0:
                continue
            if readers.setdefault(number, (op, []))[0] is not op:
                raise _malformed(op, f"set {number} is for two ops")
            readers[number][1].append(index)
    if members.keys() != readers.keys():
        wrong = min(members.keys() ^ readers.keys())
        op = members[wrong][0] if wrong in members else readers[wrong][0]
        raise _malformed(op, f"set {wrong} lacks members or the op that it is for")
    sets = [
        DecidedSet(number, tuple(members[number]), reader, tuple(operands))
        for number, (reader, operands) in sorted(readers.items())
    ]
    for chosen in sets:
        _verify(chosen)
    return sets


def _verify(chosen: DecidedSet) -> None:
    if max(chosen.operands) >= len(chosen.reader.operands):
        raise _malformed(chosen.reader, f"set {chosen.number} is for an operand that is not there")
    for index in chosen.operands:
        if viewed(chosen.reader.operands[index]).owner not in chosen.members:
            message = f"set {chosen.number} does not have the op that makes operand {index}"
            raise _malformed(chosen.reader, message)


def _array(numbers: Sequence[int]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, list(numbers))


def _numbers(op: Operation, name: str) -> Iterator[int]:
    attribute = op.attributes.get(name)
    if attribute is None:
        return
    numbers = cast(DenseArrayBase[IntegerType], attribute)
    if not isinstance(attribute, DenseArrayBase) or numbers.elt_type != i64:
        raise _malformed(op, f"{name} is {attribute}, expected array<i64>")
    yield from numbers.get_values()


def _malformed(op: Operation, message: str) -> BraidError:
    return BraidError(
        f"the decision to recompute is malformed: {message}",
        location=source_location(op),
        hint=_HINT,
    )
