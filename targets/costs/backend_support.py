"""Decide which ops a backend supports, with which priority, by its mapping list."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.tensor_storage import is_addressing
from braid.dialects.braid import Braid
from braid.dialects.braid.attribute_names import CANDIDATES
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp, splat_value
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import GroupOp, YieldOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.support.errors import BraidError, UnsupportedError, did_you_mean
from braid.targets.costs.op_amounts import amounts_of
from braid.targets.machines.mapping_list import BEST_PRIORITY, EVERY_OP, MappingEntry
from braid.targets.machines.target import BackendDescription

_KNOWN = {op.name for op in Braid.operations}
RELU = "relu"
"""Another name of `maximum` with 0, for mapping lists and pins."""
_LONG = 3
"""The shortest name for which a misspelling is suggested."""


def require_supported(ops: Iterable[Operation], backend: BackendDescription) -> None:
    """Check that `backend` runs each of `ops`, or for a group what is in it.

    Ops that take no instruction, such as a slice, run everywhere. Raises BraidError where the
    mapping list names an op that braid has not, and UnsupportedError for the first op that does not
    run.
    """
    require_known_operations(backend)
    if any(entry.takes_every_op for entry in backend.operations):
        return
    for op in ops:
        for inner in _computing(op):
            if priority_on(inner, backend) is None:
                raise UnsupportedError(
                    f"backend '{backend.name}' does not run '{inner.name}'",
                    location=source_location(inner),
                    hint="it is not among the 'operations' of the target's description",
                )


def require_known_operations(backend: BackendDescription) -> None:
    """Raise BraidError if the mapping list names an op that braid does not have."""
    for entry in backend.operations:
        if entry.operation.startswith("braid.") and entry.operation not in _KNOWN:
            raise BraidError(
                f"'operations' of backend '{backend.name}' names '{entry.operation}', no op",
                hint=did_you_mean(entry.operation, _KNOWN),
            )


def similar_operation(name: str) -> str | None:
    """Return a hint with the op that an entry of this name may mean; None where it names one, or
    none.
    """
    if len(name) < _LONG or "." in name or name == RELU or f"braid.{name}" in _KNOWN:
        return None
    return did_you_mean(name, (known.removeprefix("braid.") for known in _KNOWN))


def kinds_of(op: Operation) -> tuple[str, ...]:
    """Return what mapping lists and pins may call `op`: its name, short too, and the kind of an
    opaque op.

    `maximum` with 0 is a `relu` too, as models have it.
    """
    names = [op.name, op.name.removeprefix("braid.")]
    if isinstance(op, OpaqueOp):
        names.append(op.kind.data)
    constants = [value.owner for value in op.operands if isinstance(value.owner, ConstantOp)]
    if op.name == "braid.maximum" and any(splat_value(each) == 0 for each in constants):
        names.append(RELU)
    return tuple(names)


def is_supported(op: Operation, backend: BackendDescription) -> bool:
    """Return whether `backend` runs `op`, or for a group all that is in it."""
    return priority_on(op, backend) is not None


def priority_on(op: Operation, backend: BackendDescription) -> int | None:
    """Return how much `backend` is preferred for `op`, 1 is best; None where it does not run it.

    `braid.candidates` on the op says it before anything else, then its own `backends` if it is
    opaque, then the first entry of the mapping list that takes it. A group is preferred as its
    worst member. Raises BraidError for an entry that asks for what such ops do not have.
    """
    candidates = op.attributes.get(CANDIDATES)
    if isinstance(candidates, DictionaryAttr):
        given = candidates.data.get(backend.name)
        return given.value.data if isinstance(given, IntegerAttr) else None
    if isinstance(op, GroupOp):
        inner = [priority_on(each, backend) for each in _computing(op)]
        known = [priority for priority in inner if priority is not None]
        return max(known, default=BEST_PRIORITY) if len(known) == len(inner) else None
    entry = entry_for(op, backend)
    listed = None if entry is None else entry.priority
    if listed is None and is_addressing(op):
        return BEST_PRIORITY
    if isinstance(op, OpaqueOp) and op.backends is not None:
        named = _named_backends(op.backends)
        return (listed or BEST_PRIORITY) if backend.name in named else None
    return listed


def entry_for(op: Operation, backend: BackendDescription) -> MappingEntry | None:
    """Return the first entry of the mapping list that takes `op`.

    Raises BraidError for an entry that asks for parts that such ops do not have.
    """
    return next((entry for entry in backend.operations if _takes(entry, op, backend)), None)


def measure(op: Operation, name: str) -> Sequence[float]:
    """Return the values of the operand or result `name` of `op`, empty if it has no such name.

    `rank` of its first operand, `elements` of its largest tensor, `bytes` that it reads and writes,
    `kernel`, the extents of its window, and `dim0`, `dim1`, … of its first operand; otherwise its
    attribute of this name.
    """
    shapes = [shape_of(tensor) for tensor in _tensors(op)]
    first = shapes[0] if shapes else ()
    if name == "rank":
        return [len(first)]
    if name == "elements":
        return [max(map(math.prod, shapes), default=0)]
    if name == "bytes":
        return [amounts_of(op).moved]
    if name == "kernel":
        return _kernel(op)
    if name.startswith("dim") and name[3:].isdigit():
        return [first[int(name[3:])]] if int(name[3:]) < len(first) else []
    value = op.attributes.get(name) or op.properties.get(name)
    if isinstance(value, IntegerAttr):
        return [value.value.data]
    if isinstance(value, DenseArrayBase):
        return [float(each) for each in cast(Sequence[float], value.get_values())]
    return []


def _takes(entry: MappingEntry, op: Operation, backend: BackendDescription) -> bool:
    """Return whether `op` is one that the entry is about, and all holds that it asks for."""
    if not any(map(entry.names, kinds_of(op))):
        return False
    if entry.types:
        tensors = _tensors(op)
        if not tensors or str(element_type_of(tensors[0])) not in entry.types:
            return False
    bounds = [(name, -math.inf, most) for name, most in entry.at_most]
    bounds += [(name, least, math.inf) for name, least in entry.at_least]
    for name, least, most in bounds:
        values = measure(op, name)
        if not values and entry.operation != EVERY_OP:
            raise BraidError(
                f"'operations' of backend '{backend.name}' bounds '{name}' of "
                f"'{entry.operation}', which '{op.name}' has not",
                location=source_location(op),
                hint="bounds are on rank, elements, bytes, kernel, dim0, dim1, … and attributes",
            )
        if not values or not all(least <= value <= most for value in values):
            return False
    return all(_has(op, name, value) for name, value in entry.attributes)


def _has(op: Operation, name: str, expected: str | int) -> bool:
    value = op.attributes.get(name) or op.properties.get(name)
    if isinstance(value, StringAttr):
        return value.data == expected
    return isinstance(value, IntegerAttr) and value.value.data == expected


def _tensors(op: Operation) -> list[SSAValue]:
    return [v for v in (*op.operands, *op.results) if isinstance(v.type, TensorType)]


def _kernel(op: Operation) -> Sequence[float]:
    if isinstance(op, ConvOp | ConvTransposeOp):
        return shape_of(op.weight)[2:]
    return op.window.get_values() if isinstance(op, PoolOp) else ()


def _named_backends(backends: Attribute) -> frozenset[str]:
    if isinstance(backends, DictionaryAttr):
        return frozenset(backends.data)
    elements = cast(ArrayAttr[Attribute], backends).data
    return frozenset(name.data for name in elements if isinstance(name, StringAttr))


def _computing(op: Operation) -> Iterator[Operation]:
    if isinstance(op, GroupOp):
        for inner in op.body.block.ops:
            yield from _computing(inner)
    elif not op.regions and not isinstance(op, YieldOp | ConstantOp) and not is_addressing(op):
        yield op
