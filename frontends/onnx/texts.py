"""Text in a model, which protobuf does not check: if it is no UTF-8, Python returns its bytes."""

from typing import Any

from onnx import ModelProto, TensorProto

from braid.support.errors import BraidError, SourceLocation

_SHOWN_BYTES = 40
_EXPLANATION = "doc_string"
"""Text that nothing reads."""
_PLAIN = (str, int, float)


def check_texts(proto: ModelProto, location: SourceLocation) -> None:
    """Raise BraidError for a name or another text of a model that is no UTF-8."""
    pending: list[Any] = [proto]
    while pending:
        message = pending.pop()
        is_tensor = type(message) is TensorProto
        for field, value in _beside_data(message) if is_tensor else message.ListFields():
            if type(value) in _PLAIN:
                continue
            if field.type == field.TYPE_MESSAGE:
                if hasattr(value, "ListFields"):
                    pending.append(value)
                else:
                    pending.extend(value)
            elif field.type == field.TYPE_STRING and field.name != _EXPLANATION:
                for entry in (value,) if isinstance(value, bytes) else value:
                    if isinstance(entry, bytes):
                        raise BraidError(
                            f"field '{field.name}' of a {message.DESCRIPTOR.name} is "
                            f"{entry[:_SHOWN_BYTES]!r}, expected text in UTF-8",
                            location=location,
                            hint="export the model again, or copy the file again",
                        )


def _beside_data(tensor: TensorProto) -> list[tuple[Any, Any]]:
    """Return the fields of a tensor that may hold text: asking for all would copy its data."""
    fields = tensor.DESCRIPTOR.fields_by_name
    return [(fields[name], getattr(tensor, name)) for name in ("name", "external_data")]
