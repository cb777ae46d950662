"""A model file without its weights: rewriting protobuf's wire format.

Parsing a model the ordinary way copies every weight into the process. `skeleton` copies
everything else, and turns each large `TensorProto.raw_data` into ONNX's own reference to external
data, here to a range of the model file itself. The wire format is described at
https://protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)

from braid.support.errors import BraidError

_KEPT_BYTES = 1024
_DEPTH = 100
"""The deepest nesting of messages that is read; it is protobuf's limit, too."""
_NAME_BYTES = 2**16
_LARGEST = 2**31 - 1
"""Bytes of a message of protobuf."""
_EXPLANATIONS = ("doc_string", "producer_version")
_DESCENDED = {
    message.DESCRIPTOR.full_name
    for message in (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        SparseTensorProto,
        TensorProto,
        ValueInfoProto,
    )
}
_BYTES = 2
_RAW_DATA = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
_LISTS = {
    AttributeProto.DESCRIPTOR.fields_by_name[name].number for name in ("floats", "ints", "strings")
}
"""Lists in which every element is a field: one by one, a million of them would take seconds."""


@dataclass(frozen=True)
class _Field:
    number: int
    begin: int
    """The offset in bytes of the field, with its tag."""
    payload: int
    """The offset in bytes of the content of a length-delimited field, `end` for other fields."""
    end: int


def skeleton(data: memoryview, location: str) -> bytes:
    """Return the serialized `ModelProto` in `data` with large raw data replaced by references.

    A reference says `location` (the model's own file name), offset and length, in bytes, as
    external data does. Raises BraidError where `data` is not a protobuf message.
    """
    return b"".join(_rewrite(data, 0, len(data), ModelProto.DESCRIPTOR, location, 1))


def _rewrite(
    data: memoryview, begin: int, end: int, message: Any, location: str, depth: int
) -> Iterator[bytes | memoryview]:
    if depth > _DEPTH:
        raise BraidError(
            f"messages are nested more than {_DEPTH} deep",
            hint="branches and bodies of loops may be nested 24 deep",
        )
    fields = message.fields_by_number
    reference: bytes = b""
    for field in _fields(data, begin, end):
        size = field.end - field.payload
        if message is AttributeProto.DESCRIPTOR and field.number in _LISTS:
            _require_size(end - field.begin, field.begin)
            # An attribute has one value: further fields continue its list, and hold no weights.
            yield data[field.begin : end]
            return
        kind = fields[field.number].message_type if field.number in fields else None
        if size <= _KEPT_BYTES:
            yield data[field.begin : field.end]
        elif kind is not None and kind.full_name in _DESCENDED:
            inner = _rewrite(data, field.payload, field.end, kind, location, depth + 1)
            yield from _message(field.number, b"".join(inner))
        elif message is TensorProto.DESCRIPTOR and field.number == _RAW_DATA:
            reference = _reference(location, field.payload, size)
        else:
            _require_size(size, field.begin)
            if size > _NAME_BYTES and _is_name(fields.get(field.number)):
                raise BraidError(
                    f"field '{fields[field.number].name}' of a {message.name} has {size:,} bytes, "
                    f"expected a name of at most {_NAME_BYTES:,}"
                )
            yield data[field.begin : field.end]
    # Last, since the last field holds: the tensor may say itself that its data is here.
    yield reference


def _require_size(size: int, begin: int) -> None:
    if size > _LARGEST:
        raise BraidError(
            f"a field of {size:,} bytes at byte {begin} is not a weight, expected at most "
            f"{_LARGEST:,} bytes"
        )


def _is_name(field: Any) -> bool:
    """Return whether a field of a message is text, and not an explanation."""
    return field is not None and field.type == field.TYPE_STRING and field.name not in _EXPLANATIONS


def _reference(location: str, offset: int, length: int) -> bytes:
    tensor = TensorProto(data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor.SerializeToString()


def _message(number: int, body: bytes) -> Iterator[bytes]:
    yield _varint(number << 3 | _BYTES)
    yield _varint(len(body))
    yield body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        begin = position
        tag, position = _read_varint(data, position, end)
        payload: int | None = None
        match tag & 7:
            case 0:
                _, position = _read_varint(data, position, end)
            case 1:
                position += 8
            case 2:
                size, payload = _read_varint(data, position, end)
                position = payload + size
            case 5:
                position += 4
            case wire_type:
                raise BraidError(f"not a protobuf message: wire type {wire_type} at byte {begin}")
        if position > end:
            raise BraidError(f"truncated: a field at byte {begin} ends {position - end} bytes late")
        yield _Field(tag >> 3, begin, position if payload is None else payload, position)


def _read_varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise BraidError(f"truncated or not a protobuf message: no number ends at byte {position}")
