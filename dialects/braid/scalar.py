"""Scalar expressions: the body of a stage, as data.

A body is a tree over the operations of the elementwise table, so the same body can be counted
(cost), interpreted, and written as `arith`/`math` on scalars or on vectors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute

from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Argument:
    """The value read through access `index` of the stage."""

    index: int


@dataclass(frozen=True)
class Literal:
    """A number of the given element type."""

    value: float | int | bool
    type: Attribute


@dataclass(frozen=True)
class SizeNumber:
    """The value of a size as a number of the given element type."""

    size: Extent
    type: Attribute


@dataclass(frozen=True)
class Position:
    """The value of iteration dim `dim`, as an integer of the given type."""

    dim: int
    type: Attribute


@dataclass(frozen=True)
class Load:
    """The element of the op's operand `operand` at `indices`, one per dim.

    An index below 0 counts from the end of the dim. An index outside the dim has no meaning,
    but must not read outside of the tensor.
    """

    operand: int
    indices: tuple["Scalar", ...]
    type: Attribute


@dataclass(frozen=True)
class Apply:
    """Elementwise operation `operation` on `arguments`; the value has element type `type`."""

    operation: str
    arguments: tuple["Scalar", ...]
    type: Attribute


Scalar: TypeAlias = Argument | Literal | SizeNumber | Position | Apply | Load


def walk(body: Scalar) -> Iterator[Scalar]:
    """Yield every node of the expression, arguments before their users."""
    for inner in _inner(body):
        yield from walk(inner)
    yield body


def substitute(body: Scalar, arguments: tuple[Scalar, ...]) -> Scalar:
    """Return `body` with every `Argument(i)` replaced by `arguments[i]`."""
    if isinstance(body, Argument):
        return arguments[body.index]
    inner = tuple(substitute(argument, arguments) for argument in _inner(body))
    if isinstance(body, Apply):
        return Apply(body.operation, inner, body.type)
    return Load(body.operand, inner, body.type) if isinstance(body, Load) else body


def _inner(body: Scalar) -> tuple[Scalar, ...]:
    if isinstance(body, Apply):
        return body.arguments
    return body.indices if isinstance(body, Load) else ()
