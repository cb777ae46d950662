"""Report the nodes of a model that braid cannot take, in one form for all formats of models.

A frontend goes on after such a node with what does not depend on it, so that the error counts all.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from braid.support.documentation import page
from braid.support.errors import Note, SourceLocation, UnsupportedError

PAGE = page("import-an-op.md")
"""The page on how to add an op."""

_MOST_KINDS = 20
_MOST_REASONS = 5
_LONGEST_NAME = 80
_ALIKE, _ALIKE_BY_A_LETTER = 0.88, 0.8
"""The least similarity, from 0 to 1, of a name and its misspelling."""
_OTHER_KINDS = frozenset({"all", "complex", "sequence", "string"})
"""An op with such a word in its name is about devices or values that braid does not have."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class MissingOpError(UnsupportedError):
    """A node is of an op that braid does not have."""


class UnsupportedNodesError(UnsupportedError):
    """Nodes of a model that are not supported: prints the first of them, and counts the others."""

    found: tuple[tuple[str, UnsupportedError], ...] = ()
    """The name of each refused node's op, with the error that it was refused for."""

    @property
    def lacks_ops(self) -> bool:
        """Return whether a node is of an op that braid does not have at any size."""
        return any(isinstance(error, MissingOpError) for _, error in self.found)


def missing_op(
    op: str,
    known: Iterable[str],
    *,
    subject: str = "",
    origin: str = "",
    location: SourceLocation | None = None,
    hint: str | None = None,
) -> MissingOpError:
    """Return the error about a node of an op that braid does not have.

    `op` and the `known` ones are names with the domain or dialect in front; `subject` is the node,
    `origin` says where the op comes from: its domain and version. `hint` is another way out.
    """
    nearest = nearest_op(op, known)
    ways = [f"the nearest supported op is '{nearest}'"] if nearest else []
    ways += [hint] if hint else []
    return MissingOpError(
        (f"{subject}: " if subject else "")
        + f"the op {op} is not supported"
        + (f" ({origin})" if origin else ""),
        location=location,
        hint="; ".join([*ways, f"{PAGE} shows how to add an op"]),
    )


class UnsupportedNodes:
    """The nodes of a model that were refused so far, in their order."""

    def __init__(self) -> None:
        self._found: list[tuple[str, UnsupportedError]] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, op: str, error: UnsupportedError) -> None:
        """Add a node of `op`, or what was found in its graphs."""
        nested = error.found if isinstance(error, UnsupportedNodesError) else ()
        self._found += nested or [(op, error)]

    def error(self) -> UnsupportedNodesError:
        """Return the error about all of them, which are one or more."""
        (_, first), *others = self._found
        error = UnsupportedNodesError(
            first.message,
            location=first.location,
            hint=first.hint,
            notes=[*first.notes, *_notes(others)],
        )
        error.found = tuple(self._found)
        return error


def _notes(others: Sequence[tuple[str, UnsupportedError]]) -> list[Note]:
    """Return how many nodes there are besides the first, and why ops that braid has are refused."""
    if not others:
        return []
    counts = Counter(op for op, _ in others)
    kinds = [f"{op:.{_LONGEST_NAME}} ({count})" for op, count in sorted(counts.items())]
    rest = len(kinds) - _MOST_KINDS
    listing = ", ".join(kinds[:_MOST_KINDS]) + (f" and {rest} other ops" if rest > 0 else "")
    number = f"{len(others)} more node{'s' * (len(others) > 1)}"
    reasons = [Note(e.message, e.location) for _, e in others if not isinstance(e, MissingOpError)]
    return [
        Note(f"{number} of the model would still be missing: {listing}"),
        *reasons[:_MOST_REASONS],
    ]


def nearest_op(op: str, known: Iterable[str]) -> str | None:
    """Return the op of `known` that is most like `op`, None where none is of its kind.

    This is an op with its name in another domain or dialect, one with a similar spelling, or one
    whose words end its name: a `FusedConv` is a kind of `Conv`. Names with only a common beginning
    say little, unless two words agree: `MatMulNBits` is a `MatMul`.
    """
    name, words = _short(op), _words(op)
    best: tuple[float, str] | None = None
    for other in sorted(set(known) - {op}):
        score = _likeness(name, words, _short(other), _words(other))
        if score > 0 and (best is None or score > best[0]):
            best = (score, other)
    return best[1] if best else None


def _likeness(name: str, words: Sequence[str], other: str, others: Sequence[str]) -> float:
    """Return the similarity of two names, 0 if they differ."""
    if name == other:
        return 4
    alike = _ALIKE if abs(len(name) - len(other)) > 1 else _ALIKE_BY_A_LETTER
    matcher = SequenceMatcher(None, name.lower(), other.lower(), autojunk=False)
    if matcher.quick_ratio() >= alike and matcher.ratio() >= alike:
        return 2 + matcher.ratio()
    if not others or len(others) >= len(words) or not _OTHER_KINDS.isdisjoint(words):
        return 0
    if words[-len(others) :] == others and len(other) > 2:
        return 1 + len(others) / len(words)
    return len(others) / len(words) if len(others) > 1 and words[: len(others)] == others else 0


def _short(op: str) -> str:
    return op.rpartition(".")[2][:_LONGEST_NAME]


def _words(op: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_short(op))]
