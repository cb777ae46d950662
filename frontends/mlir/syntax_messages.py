"""The message for an error of xDSL's parser."""

from xdsl.utils.exceptions import ParseError

_UNSAID = {
    " in block definition": "expected an op, a label such as ^bb0:, or the '}' of the region",
    "Expected suffix identifier after {first_char}": "expected a name after '%', '#', '!' or '^'",
}
"""Messages of xDSL that only say where something is missing."""


def message_of(error: ParseError) -> str:
    """Return the error as a sentence."""
    return _UNSAID.get(error.msg, error.msg)
