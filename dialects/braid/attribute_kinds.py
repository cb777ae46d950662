"""What attributes that people write by hand hold, so that another kind is an error, not ignored.

Numbers of a profile are checked where they are read, since their ranges matter too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute

from braid.dialects.braid.attribute_names import (
    CANDIDATES,
    CLUSTER,
    COLOCATE,
    DEVICE,
    LAYOUT_SECONDS,
    NAME,
    PARAMETERS,
    PROFILE_KEYS,
    SECONDS,
    TARGET,
)
from braid.dialects.braid.attributes import TargetAttr


@dataclass(frozen=True)
class _Kind:
    """Attributes of one of these classes; `what` tells people."""

    classes: tuple[type[Attribute], ...]
    what: str

    def holds(self, attribute: Attribute) -> bool:
        if isinstance(attribute, IntegerAttr):
            # An index, or an i1 such as `true`, is not a number.
            kind = cast("IntegerAttr[IntegerType | IndexType]", attribute).type
            is_number = isinstance(kind, IntegerType) and kind.width.data > 1
            return IntegerAttr in self.classes and is_number
        return isinstance(attribute, self.classes)


_KINDS: Mapping[str, _Kind] = {
    NAME: _Kind((StringAttr, ArrayAttr), "a string, or an array of strings"),
    PARAMETERS: _Kind((StringAttr,), "the path of a file, a string"),
    TARGET: _Kind((TargetAttr,), 'a target, such as #braid.target<"host">'),
    DEVICE: _Kind((StringAttr,), 'the name of a device, such as "cpu:0"'),
    CANDIDATES: _Kind((DictionaryAttr,), "a dictionary from backends to priorities"),
    COLOCATE: _Kind((StringAttr,), "a string"),
    CLUSTER: _Kind((IntegerAttr,), "the number of a cluster, such as 3 : i64"),
    PROFILE_KEYS: _Kind((DictionaryAttr,), "a dictionary of strings"),
    SECONDS: _Kind((FloatAttr,), "a number, such as 2.0e-3 : f64"),
    LAYOUT_SECONDS: _Kind((DictionaryAttr,), "a dictionary from layouts to seconds"),
}


def expected_kind(name: str, attribute: Attribute) -> str | None:
    """What the attribute of this name should be; None where it is."""
    kind = _KINDS.get(name)
    return None if kind is None or kind.holds(attribute) else kind.what
