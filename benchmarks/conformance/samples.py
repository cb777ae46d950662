"""A fixed part of a long list of cases."""

import zlib
from collections.abc import Sequence


def sample(names: Sequence[str], count: int | None) -> list[str]:
    """Return `count` of the names, in an order that looks random.

    A larger sample begins with a smaller. All of them in order, if there is no count.
    """
    if count is None:
        return list(names)
    return sorted(names, key=lambda name: zlib.crc32(name.encode()))[:count]
