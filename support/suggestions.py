"""What somebody may have meant by a name that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """A hint with the known name that is most like this one; None where none is alike.

    `alike`, from 0 to 1, is how much two names must have in common.
    """
    similar = get_close_matches(name, list(known), n=1, cutoff=alike)
    return f"did you mean '{similar[0]}'?" if similar else None
