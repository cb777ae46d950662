"""The hover text of a value, an op, a symbol or an attribute: types, bytes, costs, decisions."""

import re
from collections.abc import Iterable, Iterator
from typing import cast

from xdsl.dialects.builtin import FloatAttr, FunctionType, IntegerAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from braid.analysis.storage.tensor_storage import open_storage_bytes, storage_bytes
from braid.dialects.braid.attribute_names import (
    ARENA_BOUND,
    ARENA_BYTES,
    NAME,
    NAMESPACE,
    SECONDS,
    STAGE_SECONDS,
    WEIGHTS_BYTES,
)
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.names import names_of
from braid.frontends.mlir.source_map import Definition, TextRange
from braid.support.byte_sizes import format_size
from braid.support.errors import BraidError
from braid.tools.explain.quantities import format_seconds
from braid.tools.lsp.analysis import Part
from braid.tools.lsp.attribute_docs import attribute_docs
from braid.tools.lsp.costs import costs_of
from braid.tools.lsp.documentation import summary_of
from braid.tools.lsp.names import Use

_KEY = re.compile(r"braid\.\w+(?=\s*(?:=|[,}]))")
_LONGEST = 300
"""Characters of an attribute that are shown."""
_BYTES = {ARENA_BYTES, ARENA_BOUND, WEIGHTS_BYTES}
_TIMES = {SECONDS, STAGE_SECONDS}


def hover_at(part: Part, position: int) -> tuple[TextRange, str] | None:
    """Return the item at `position` of the part, and Markdown about it; None if there is none."""
    if (key := _attribute_at(part.text, position)) is not None:
        return key
    if (use := part.names.use_at(position)) is not None:
        definition = part.names.definition_of(use)
        text = _of_definition(part, use, definition) if definition is not None else ""
        return (use.place, text) if text else None
    if (parsed := part.op_named_at(position)) is not None:
        return parsed.name, "\n\n".join([*_of_op(parsed.op), *_cost_of(part, parsed.op)])
    return None


def _cost_of(part: Part, op: Operation) -> Iterator[str]:
    """Yield the cost of a run of `op` on its device, if it is known."""
    if not part.is_valid:
        return  # what costs are computed of may be missing
    try:
        if lines := [f"- {line}" for line in costs_of(op, part.costs)]:
            yield "\n".join(lines)
    except BraidError as error:
        yield f"cost unknown: {error.message}"


def _attribute_at(text: str, position: int) -> tuple[TextRange, str] | None:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    for match in _KEY.finditer(text, start, len(text) if end < 0 else end):
        place = TextRange(*match.span())
        if place.holds(position) and (meaning := attribute_docs().get(match[0])):
            return place, f"`{match[0]}`: {meaning}"
    return None


def _of_definition(part: Part, use: Use, definition: Definition) -> str:
    if definition.name.startswith("%"):
        if not definition.values:
            return f"`{definition.name}` belongs to an op that cannot be parsed"
        values = definition.values
        if len(values) > 1 and use.place != definition.place and use.number < len(values):
            values = (values[use.number],)
        return "\n\n---\n\n".join(_of_value(part, value, use.name) for value in values)
    symbols = part.names.symbols
    op = next((op for op, symbol in symbols.items() if symbol is definition), None)
    return "\n\n".join(_of_op(op)) if op is not None else ""


def _of_value(part: Part, value: SSAValue, name: str) -> str:
    lines = [f"```mlir\n{name} : {value.type}\n```", _origin(value), *_of_type(value.type)]
    if isinstance(value, OpResult):
        lines += [*_decisions(value.op), *_cost_of(part, value.op)]
    return "\n\n".join(line for line in lines if line)


def _origin(value: SSAValue) -> str:
    """Describe the definition of `value`."""
    if isinstance(value, BlockArgument):
        around = value.owner.parent_op()
        of = f" of `{around.name}`" if around is not None else ""
        return f"block argument #{value.index}{of}"
    assert isinstance(value, OpResult), "what is defined is either"
    count = len(value.op.results)
    which = f"result #{value.index} of {count}" if count > 1 else "result"
    names = ", ".join(f'"{name}"' for name in names_of(value.op))
    return f"{which} of `{value.op.name}`{f' {names}' if names else ''}"


def _of_type(type: Attribute) -> Iterator[str]:
    """Yield the layout and the bytes of a tensor."""
    if not isinstance(type, TensorType):
        return
    try:
        tensor = cast(AnyTensor, type)
        layout = layout_of(tensor)
        stored = "row-major" if layout.is_row_major else f"`{layout.tag}`"
        yield f"layout {stored}, {_bytes_of(tensor)}"
    except (BraidError, ValueError, LookupError, TypeError) as error:
        # A type that is half written, or whose elements have no size.
        yield f"size unknown: {error}"


def _bytes_of(type: AnyTensor) -> str:
    if type.has_static_shape():
        size = storage_bytes(type)
        return f"{format_size(size)} ({size:,} bytes)" if size >= 1024 else format_size(size)
    return f"{open_storage_bytes(type)} bytes"


def _of_op(op: Operation) -> Iterator[str]:
    """Yield a heading, the documentation of the op, its results, and the decisions about it."""
    names = ", ".join(f'"{name}"' for name in names_of(op))
    yield f"`{op.name}`{f' {names}' if names else ''}"
    function_type = op.properties.get("function_type")
    if isinstance(function_type, FunctionType):
        yield f"```mlir\n{function_type}\n```"
    for result in op.results:
        yield ", ".join([f"`{result.type}`", *_of_type(result.type)])
    yield from _decisions(op)
    if summary := summary_of(type(op)):
        yield summary


def _decisions(op: Operation) -> Iterator[str]:
    """Yield the attributes about cost and decisions, each with its meaning."""
    rows = list(_rows(op.attributes.items()))
    if rows:
        yield "\n".join(rows)


def _rows(attributes: Iterable[tuple[str, Attribute]]) -> Iterator[str]:
    for name, attribute in attributes:
        if name == "cost":
            yield f"- cost {_shown(SECONDS, attribute)}"
        elif name.startswith(NAMESPACE) and name != NAME:
            yield f"- `{name}` = {_shown(name, attribute)}: {attribute_docs().get(name, '')}"


def _shown(name: str, attribute: Attribute) -> str:
    """Return an attribute with a unit where it is a time or a size."""
    if name in _TIMES and isinstance(attribute, FloatAttr):
        return format_seconds(attribute.value.data)
    if name in _BYTES and isinstance(attribute, IntegerAttr):
        return format_size(attribute.value.data)
    text = str(attribute)
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}`"
