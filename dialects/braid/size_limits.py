"""The largest tensors and tables: extents come from models, which are not trusted."""

import math
from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.layout import DYNAMIC, MOST_DIMS
from braid.support.sizes.expression import Extent

MOST_ELEMENTS = 2**56
"""The limit of a tensor: its bytes, and the distance of two of its elements, then fit int64."""


def require_extents(shape: Sequence[Extent]) -> None:
    """Raise VerifyException for more dims than layouts have, or extents that no tensor has.

    Invalid sizes are negative, or have more elements than memory can hold.
    """
    require_rank(len(shape))
    known = [extent for extent in shape if isinstance(extent, int) and extent != DYNAMIC]
    if any(extent < 0 for extent in known):
        raise VerifyException(f"a tensor has shape {list(shape)}, expected no negative extents")
    if math.prod(extent for extent in known if extent > 0) > MOST_ELEMENTS:
        raise VerifyException(
            f"a tensor has shape {list(shape)}, expected at most {MOST_ELEMENTS} elements"
        )


def require_rank(rank: int) -> None:
    """Raise VerifyException for a tensor of more dims than layouts can name."""
    if rank > MOST_DIMS:
        raise VerifyException(f"a tensor has {rank} dims, expected at most {MOST_DIMS}")


MOST_NUMBERS = 2**26
"""The limit of a table that compilation computes for an op, such as where each output is read: 512
MiB of i64."""


def require_table(numbers: int, what: str) -> None:
    """Raise VerifyException if a table of an op has more than `MOST_NUMBERS` entries.

    Code that allocates in proportion to an extent, except for the model's tensors, checks first:
    extents come from models, which are not trusted.
    """
    if numbers > MOST_NUMBERS:
        raise VerifyException(
            f"{what}: a table of {numbers} entries is needed, expected at most {MOST_NUMBERS}"
        )
