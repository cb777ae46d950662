"""Under which names a profile counts what control flow does: `braid.profile_keys`.

An `scf.if` has the keys `condition`, `then` and `else`, an `scf.index_switch` `condition`,
`default` and the number of each case, a loop `enter` and `next`; each names an op whose executions
tell about the control flow. Rewriting may remove or merge those ops, so braid's own profile counts
regions besides, under names derived from the keys, or from the op's own name where it has none.
"""

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation

from braid.dialects.braid.attribute_names import PROFILE_KEYS
from braid.dialects.braid.names import names_of

_SUFFIX = "/region"


def profile_keys(op: Operation) -> Mapping[str, str]:
    """The names under which the control flow of `op` is counted, by key."""
    keys = op.attributes.get(PROFILE_KEYS)
    if not isinstance(keys, DictionaryAttr):
        return {}
    return {key: v.data for key, v in keys.data.items() if isinstance(v, StringAttr)}


def region_counter(op: Operation, key: str) -> str | None:
    """The counter of how often the region of `op` that `key` stands for was entered."""
    name = profile_keys(op).get(key)
    if name is None and (own := names_of(op)):
        name = f"{own[0]}/{key}"
    return None if name is None else name + _SUFFIX
