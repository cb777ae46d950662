from math import prod

from hypothesis import given
from hypothesis import strategies as st

from braid.lowering.common.reshape import common_groups

EXTENTS = st.sampled_from([1, 1, 2, 3, 4, 6])


@st.composite
def shapes(draw):
    """Two shapes of as many elements."""
    before = draw(st.lists(EXTENTS, max_size=4))
    factors = [f for n in before for f in ([2, 2] if n == 4 else [2, 3] if n == 6 else [n])]
    after: list[int] = []
    for factor in draw(st.permutations(factors)):
        if after and draw(st.booleans()):
            after[-1] *= factor
        else:
            after.append(factor)
    return before, after


@given(shapes())
def test_groups_cover_both_shapes(pair) -> None:
    before, after = pair
    collapse, expand, extents = common_groups(before, after)
    if extents:
        assert [dim for group in collapse for dim in group] == list(range(len(before)))
        assert [dim for group in expand for dim in group] == list(range(len(after)))
    else:
        assert prod(before) == prod(after) == 1
    for group, other, extent in zip(collapse, expand, extents, strict=True):
        assert group and other
        assert prod(before[d] for d in group) == extent == prod(after[d] for d in other)
