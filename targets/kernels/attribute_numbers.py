"""Numbers of attributes, the same for equal ones: to hash an attribute hashes all that is in it."""

from xdsl.ir import Attribute


class AttributeNumbers:
    """The number of each attribute that was asked for; each object is hashed once."""

    def __init__(self) -> None:
        self._numbers: dict[Attribute, int] = {}
        # The attribute stands beside its number, so that its identity is not used again.
        self._known: dict[int, tuple[Attribute, int]] = {}

    def of(self, attribute: Attribute) -> int:
        """The number of the attribute."""
        known = self._known.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._known[id(attribute)] = (attribute, number)
        return known[1]
